/* The path model's graph by nodes, made on the host when the graph is first used. */
#include <algorithm>
#include <new>
#include <numeric>
#include <vector>

#include "compute/cuda/paths.h"

struct cuda_path_graph {
    vlp_path_graph graph; /* whose arrays it was made from */
    path_layout layout;
    void *memory;
    cuda_path_graph *next;
};

namespace {

struct host_graph {
    std::vector<int64_t> offset;
    std::vector<int32_t> neighbor, relation, triple;
};

struct host_layout {
    std::vector<int32_t> entity, node, begin, segment_node, relation_chunk, hub_piece, reverse;
    std::vector<path_slot> slots;
    std::vector<int2> triples, edges, piece, chunk;
    int32_t piece_size = PATH_MAX_PIECE, hubs = 0;
};

template <class T> void read(vlp_compute *compute, std::vector<T> *out, const T *from, int64_t count) {
    out->resize(static_cast<size_t>(count));
    cuda_copy(compute, out->data(), from, out->size() * sizeof(T));
}

host_graph read_graph(vlp_compute *compute, const vlp_path_graph *graph) {
    host_graph out;
    read(compute, &out.offset, graph->offset, static_cast<int64_t>(graph->entities) + 1);
    read(compute, &out.neighbor, graph->neighbor, 2 * graph->triples);
    read(compute, &out.relation, graph->relation, 2 * graph->triples);
    read(compute, &out.triple, graph->triple, 2 * graph->triples);
    return out;
}

/* Nodes by descending degree, equal ones by entity. */
void number_nodes(host_layout *to, const host_graph &graph, int32_t entities) {
    auto degree = [&](int32_t e) { return graph.offset[e + 1] - graph.offset[e]; };
    to->entity.resize(entities);
    to->node.resize(entities);
    to->begin.assign(static_cast<size_t>(entities) + 1, 0);
    std::iota(to->entity.begin(), to->entity.end(), 0);
    std::stable_sort(to->entity.begin(), to->entity.end(),
                     [&](int32_t a, int32_t b) { return degree(a) > degree(b); });
    for (int32_t i = 0; i < entities; i++) {
        int32_t entity = to->entity[i];
        to->node[entity] = i;
        to->begin[i + 1] = to->begin[i] + static_cast<int32_t>(degree(entity));
        to->hubs += degree(entity) > to->piece_size;
    }
}

void set_slots(host_layout *to, const host_graph &graph, int32_t half, int64_t triples) {
    to->slots.resize(2 * static_cast<size_t>(triples));
    to->edges.resize(2 * static_cast<size_t>(triples));
    to->triples.resize(static_cast<size_t>(triples));
    for (size_t i = 0; i < to->entity.size(); i++) {
        int64_t first = graph.offset[to->entity[i]];
        for (int32_t at = to->begin[i]; at < to->begin[i + 1]; at++) {
            int64_t slot = first + at - to->begin[i];
            to->slots[at] = {to->node[graph.neighbor[slot]], graph.relation[slot], 0, -1};
            to->edges[at] = {to->node[graph.neighbor[slot]],
                             vlp_path_inverse(graph.relation[slot], 2 * half)};
            int2 *both = &to->triples[graph.triple[slot]];
            (graph.relation[slot] < half ? both->x : both->y) = at;
        }
    }
    to->reverse.resize(to->slots.size());
    for (int2 both : to->triples) {
        to->reverse[both.x] = both.y;
        to->reverse[both.y] = both.x;
        to->slots[both.x].position = both.y - to->begin[to->slots[both.x].node];
        to->slots[both.y].position = both.x - to->begin[to->slots[both.y].node];
    }
}

void set_pieces(host_layout *to) {
    to->hub_piece.assign(1, 0);
    for (int32_t i = 0; i < to->hubs; i++) {
        for (int32_t at = to->begin[i]; at < to->begin[i + 1]; at += to->piece_size)
            to->piece.push_back({i, at});
        to->hub_piece.push_back(static_cast<int32_t>(to->piece.size()));
    }
}

/* Whether a segment ends with this slot of a row. */
bool ends_segment(const host_layout &layout, int32_t at, int32_t begin, int32_t end) {
    return at + 1 == end || (at + 1 - begin) % layout.piece_size == 0 ||
           layout.slots[at].relation != layout.slots[at + 1].relation;
}

void set_segments(host_layout *to, int32_t relations) {
    std::vector<int32_t> next(static_cast<size_t>(relations) + 1, 0);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i + 1 < to->begin.size(); i++)
            for (int32_t at = to->begin[i]; at < to->begin[i + 1]; at++) {
                if (!ends_segment(*to, at, to->begin[i], to->begin[i + 1])) continue;
                path_slot *slot = &to->slots[at];
                if (pass == 0) {
                    next[slot->relation + 1]++;
                } else {
                    slot->segment = next[slot->relation]++;
                    to->segment_node[slot->segment] = static_cast<int32_t>(i);
                }
            }
        if (pass == 1) break;
        std::partial_sum(next.begin(), next.end(), next.begin());
        to->segment_node.resize(next.back());
        to->relation_chunk.assign(1, 0);
        for (int32_t r = 0; r < relations; r++) {
            for (int32_t at = next[r]; at < next[r + 1]; at += PATH_CHUNK)
                to->chunk.push_back({at, std::min(at + PATH_CHUNK, next[r + 1])});
            to->relation_chunk.push_back(static_cast<int32_t>(to->chunk.size()));
        }
    }
}

/* Arrays one after the other; without memory it only counts. */
struct uploader {
    vlp_compute *compute;
    char *memory;
    size_t used;

    template <class T> const T *put(const std::vector<T> &from) {
        T *to = reinterpret_cast<T *>(memory + used);
        if (memory) cuda_copy(compute, to, from.data(), from.size() * sizeof(T));
        used += (from.size() * sizeof(T) + 255) / 256 * 256;
        return to;
    }
};

void put_arrays(path_layout *to, uploader *target, const host_layout &from) {
    to->entity = target->put(from.entity);
    to->node = target->put(from.node);
    to->begin = target->put(from.begin);
    to->slots = target->put(from.slots);
    to->reverse = target->put(from.reverse);
    to->edges = target->put(from.edges);
    to->piece = target->put(from.piece);
    to->hub_piece = target->put(from.hub_piece);
    to->triples = target->put(from.triples);
    to->segment_node = target->put(from.segment_node);
    to->chunk = target->put(from.chunk);
    to->relation_chunk = target->put(from.relation_chunk);
}

void make_layout(vlp_compute *compute, cuda_path_graph *out) {
    const vlp_path_graph *graph = &out->graph;
    host_graph source = read_graph(compute, graph);
    host_layout host;
    /* Small pieces where rows are short: the longest one is what a sparse layer waits for. */
    if (2 * graph->triples < 16 * static_cast<int64_t>(graph->entities)) host.piece_size = 32;
    number_nodes(&host, source, graph->entities);
    set_slots(&host, source, graph->relations / 2, graph->triples);
    set_pieces(&host);
    set_segments(&host, graph->relations);
    host.slots.resize(host.slots.size() + PATH_PADDING);
    host.edges.resize(host.edges.size() + PATH_PADDING);
    out->layout.entities = graph->entities;
    out->layout.relations = graph->relations;
    out->layout.piece_size = host.piece_size;
    out->layout.hubs = host.hubs;
    out->layout.pieces = static_cast<int32_t>(host.piece.size());
    out->layout.segments = static_cast<int32_t>(host.segment_node.size());
    out->layout.chunks = static_cast<int32_t>(host.chunk.size());
    out->layout.slot_count = 2 * graph->triples;
    out->layout.triple_count = graph->triples;
    uploader measure = {compute, nullptr, 0};
    put_arrays(&out->layout, &measure, host);
    if (!cuda_note(compute, cudaMalloc(&out->memory, measure.used), "allocating a graph")) return;
    uploader target = {compute, static_cast<char *>(out->memory), 0};
    put_arrays(&out->layout, &target, host);
}

bool reads(const vlp_path_graph *graph, const void *memory) {
    return graph->offset == memory || graph->neighbor == memory || graph->relation == memory ||
           graph->triple == memory;
}

} // namespace

void cuda_path_forget(vlp_compute *compute, const void *memory) {
    cuda_path_graph **at = &compute->path_graphs;
    while (*at) {
        cuda_path_graph *one = *at;
        if (memory && !reads(&one->graph, memory)) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        cudaFree(one->memory);
        delete one;
        compute->generation++;
    }
}

vlp_status cuda_path_layout(vlp_compute *compute, path_layout *out, const vlp_path_graph *graph) {
    for (cuda_path_graph *one = compute->path_graphs; one; one = one->next)
        if (one->graph.offset == graph->offset && one->graph.neighbor == graph->neighbor &&
            one->graph.relation == graph->relation && one->graph.triple == graph->triple &&
            one->graph.entities == graph->entities && one->graph.triples == graph->triples) {
            *out = one->layout;
            return VLP_OK;
        }
    if (graph->entities >> PATH_NODE_BITS || graph->triples >= INT32_MAX / 2)
        return cuda_fail(VLP_ERROR_DEVICE,
                         "the graph is too large for the path model on a GPU; use the device cpu");
    cuda_path_graph *fresh = new (std::nothrow) cuda_path_graph{*graph, {}, nullptr, nullptr};
    if (!fresh) return cuda_fail(VLP_ERROR_MEMORY, "out of memory for the graph of the path model");
    try {
        make_layout(compute, fresh);
    } catch (const std::bad_alloc &) {
        cudaFree(fresh->memory);
        delete fresh;
        return cuda_fail(VLP_ERROR_MEMORY, "out of memory for the graph of the path model");
    }
    *out = fresh->layout;
    fresh->next = compute->path_graphs;
    compute->path_graphs = fresh;
    return cuda_status(compute);
}
