/* vlp: the command table. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "commands.h"

static const cli_command commands[] = {
    {"data", "stats|audit|split|import|family|random ...",
     "Inspect, check, split, import and generate data sets", cmd_data},
    {"refs", "DIR HEAD RELATION '?' | DIR '?' RELATION TAIL", "The references of a query", cmd_refs},
    {"train", "DIR -o RUN [--recipe FILE] [--set KEY=VALUE]...", "Train a model on a data set",
     cmd_train},
    {"tune", "DIR -o OUT [--trials N] [--time TIME] [--space FILE]",
     "Search for the settings with the best validation MRR", cmd_tune},
    {"eval", "RUN [--split valid|test] [--by LIST]", "Rank the answers of a split", cmd_eval},
    {"predict", "RUN HEAD RELATION '?' | RUN '?' RELATION TAIL | RUN HEAD '?' TAIL | RUN --queries FILE",
     "The best answers of a query, among all entities or some, and their references", cmd_predict},
    {"score", "RUN FILE", "Scores and probabilities of triples; with --classify true or false",
     cmd_score},
    {"mine", "RUN [-k K] [--relation NAME]", "The most likely missing triples of the graph", cmd_mine},
    {"export", "RUN --npy DIR", "Write a run's tables as numpy arrays", cmd_export},
    {"serve", "RUN [--port N] [--host ADDRESS --token-file FILE]",
     "Serve a run over HTTP, with a page to ask it from a browser", cmd_serve},
    {"report", "RUN... -o FILE.html", "Write a page about one or more runs", cmd_report},
    {0}};

int main(int argc, char **argv) {
    /* A file that exceeds the size limit is then a failed write instead of a signal. */
    signal(SIGXFSZ, SIG_IGN);
    atexit(cli_check_output);
    if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        printf("vlp %s\n", vlp_version());
        return cli_finish();
    }
    return cli_dispatch(
        commands, "vlp",
        "vlp predicts the missing triples of a knowledge graph and shows the known triples "
        "that each prediction uses.",
        argc, argv);
}
