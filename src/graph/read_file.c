/* Reading a file of triples in any format: the format is that of the options, else that of the
 * extension, else what the content looks like. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/format.h"
#include "graph/reader.h"

vlp_status vlp_file_options_check(const vlp_file_options *file) {
    if ((int)file->format < 0 || file->format >= VLP_FORMATS)
        return vlp_fail(VLP_ERROR_ARGUMENT, "there is no format %d; it is 0 (by the name) to %d",
                        (int)file->format, VLP_FORMATS - 1);
    bool any = false, all = true;
    for (int i = 0; i < 3; i++) {
        if (file->columns[i] < 0)
            return vlp_fail(VLP_ERROR_ARGUMENT, "column %d; columns count from 1", file->columns[i]);
        bool given = file->columns[i] > 0 || file->column_names[i];
        any |= given;
        all &= given;
        for (int j = 0; j < i; j++)
            if (file->columns[i] > 0 && file->columns[i] == file->columns[j] && !file->column_names[i] &&
                !file->column_names[j])
                return vlp_fail(VLP_ERROR_ARGUMENT,
                                "column %d is given for two of head, relation and tail",
                                file->columns[i]);
    }
    if (any && !all)
        return vlp_fail(VLP_ERROR_ARGUMENT, "column 0; give all of head, relation and tail, or none");
    if (file->separator == '\n' || file->separator == '\r' || file->separator == '"' ||
        (file->separator & 0x80))
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "the separator must be one ASCII character other than a line end or a quote");
    return VLP_OK;
}

/* Whether a text that looks like `seen` can be read as `format`. */
static bool is_read_as(vlp_format seen, vlp_format format) {
    if (seen == format || seen == VLP_FORMAT_AUTO) return true;
    if (format == VLP_FORMAT_NQUADS || format == VLP_FORMAT_TURTLE) return seen == VLP_FORMAT_NTRIPLES;
    return format == VLP_FORMAT_TRIG && (seen == VLP_FORMAT_NTRIPLES || seen == VLP_FORMAT_TURTLE);
}

/* The message of a failure with a wrong format in it, where the text looks like another one. */
static vlp_status name_format(vlp_status status, vlp_format format, const vlp_format_guess *seen) {
    char message[1024];
    snprintf(message, sizeof message, "%s", vlp_error_message());
    if (seen->foreign) return vlp_fail(status, "%s (this is %s)", message, seen->foreign);
    bool likely = seen->certain || vlp_format_is_table(seen->format) || vlp_format_is_table(format);
    if (!likely || is_read_as(seen->format, format)) return status;
    return vlp_fail(status, "%s (this looks like %s, not %s: choose that format, or name it *%s)",
                    message, vlp_format_title(seen->format), vlp_format_title(format),
                    vlp_format_extension(seen->format));
}

/* The format to read a text in that looks like `seen`: graphs may come later in it. */
static vlp_format widest(vlp_format seen) {
    switch (seen) {
    case VLP_FORMAT_AUTO:
    case VLP_FORMAT_TSV:
    case VLP_FORMATS:
        return VLP_FORMAT_TSV;
    case VLP_FORMAT_CSV:
        return VLP_FORMAT_CSV;
    case VLP_FORMAT_NTRIPLES:
    case VLP_FORMAT_NQUADS:
        return VLP_FORMAT_NQUADS;
    case VLP_FORMAT_TURTLE:
    case VLP_FORMAT_TRIG:
        return VLP_FORMAT_TRIG;
    }
    return VLP_FORMAT_TSV;
}

/* Chooses the format. An extension that claims a table over a text that is RDF is an error: such a text
 * may have three fields per line. */
static vlp_status choose_format(vlp_format *out, const char *name, vlp_format given,
                                const vlp_format_guess *seen) {
    vlp_format stated = vlp_format_of_name(name);
    *out = given != VLP_FORMAT_AUTO ? given : stated != VLP_FORMAT_AUTO ? stated : widest(seen->format);
    if (given == VLP_FORMAT_AUTO && seen->certain && vlp_format_is_table(*out))
        return vlp_fail(VLP_ERROR_FORMAT, "%s: this is %s, not %s: choose that format, or name it *%s",
                        name, vlp_format_title(seen->format), vlp_format_title(*out),
                        vlp_format_extension(seen->format));
    return VLP_OK;
}

static vlp_status read_table(vlp_read_sink *sink, vlp_source *source, const vlp_table_start *start,
                             const vlp_file_options *file, const vlp_read_options *options) {
    vlp_table_layout layout;
    vlp_record_format format = {.parser = vlp_parse_table, .settings = &layout};
    VLP_TRY(vlp_table_plan(&layout, &format.header, start, file, sink->format));
    format.quoted = layout.quoted;
    return vlp_read_records(sink, source, &format, options);
}

vlp_status vlp_read_source(vlp_read_sink *sink, vlp_source *source, const vlp_read_options *options) {
    static const vlp_file_options defaults = VLP_FILE_OPTIONS_INIT;
    const vlp_file_options *file = options->file ? options->file : &defaults;
    vlp_table_start start = {.name = vlp_source_name(source)};
    VLP_TRY(vlp_source_peek(source, &start.text, &start.size));
    start.ended = start.size < VLP_PEEK;
    vlp_format_guess seen = vlp_format_look(start.text, start.size);
    VLP_TRY(choose_format(&sink->format, start.name, file->format, &seen));
    size_t mark = vlp_bom_length(start.text, start.size);
    start.text += mark;
    start.size -= mark;
    vlp_status status = VLP_OK;
    switch (sink->format) {
    case VLP_FORMAT_AUTO: /* choose_format has chosen another one */
    case VLP_FORMAT_TSV:
    case VLP_FORMAT_CSV:
        status = read_table(sink, source, &start, file, options);
        break;
    case VLP_FORMAT_NTRIPLES:
        status =
            vlp_read_records(sink, source, &(vlp_record_format){.parser = vlp_parse_ntriples}, options);
        break;
    case VLP_FORMAT_NQUADS:
        status =
            vlp_read_records(sink, source, &(vlp_record_format){.parser = vlp_parse_nquads}, options);
        break;
    case VLP_FORMAT_TURTLE:
    case VLP_FORMAT_TRIG:
        status = vlp_read_turtle(sink, source, sink->format, options);
        break;
    case VLP_FORMATS:
        break;
    }
    return status == VLP_ERROR_FORMAT ? name_format(status, sink->format, &seen) : status;
}

vlp_status vlp_read_file(vlp_read_sink *sink, const char *path, const vlp_read_options *options) {
    vlp_source *source = NULL;
    VLP_TRY(vlp_source_open(&source, path));
    vlp_status status = vlp_read_source(sink, source, options);
    vlp_source_free(source);
    return status;
}
