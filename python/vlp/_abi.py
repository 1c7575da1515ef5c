"""The interface of include/vlp.h for ctypes. Written by python/generate.py: do not edit."""

from __future__ import annotations

import ctypes as c
from typing import Any

VLP_VERSION_MAJOR = 0
VLP_VERSION_MINOR = 1
VLP_VERSION_PATCH = 0
VLP_DATASET_OPTIONS_VERSION = 1
VLP_DATASET_CONTENT_VERSION = 2
VLP_SPLIT_OPTIONS_VERSION = 1
VLP_FILE_OPTIONS_VERSION = 1
VLP_FAMILY_OPTIONS_VERSION = 1
VLP_RANDOM_GRAPH_OPTIONS_VERSION = 1
VLP_REFERENCE_OPTIONS_VERSION = 1
VLP_AUDIT_OPTIONS_VERSION = 1
VLP_TIME_DEFAULT = -1.0
VLP_TRAIN_OPTIONS_VERSION = 3
VLP_TUNE_OPTIONS_VERSION = 1
VLP_RUN_OPTIONS_VERSION = 1
VLP_EVALUATION_OPTIONS_VERSION = 3
VLP_CANDIDATE_OPTIONS_VERSION = 1
VLP_PREDICT_OPTIONS_VERSION = 3
VLP_SCORE_OPTIONS_VERSION = 1
VLP_CALIBRATION_OPTIONS_VERSION = 1
VLP_CLASSIFICATION_OPTIONS_VERSION = 1
VLP_MINE_OPTIONS_VERSION = 2
VLP_OK = 0
VLP_ERROR_MEMORY = 1
VLP_ERROR_IO = 2
VLP_ERROR_FORMAT = 3
VLP_ERROR_UNKNOWN = 4
VLP_ERROR_ARGUMENT = 5
VLP_ERROR_STOPPED = 6
VLP_ERROR_DIVERGED = 7
VLP_ERROR_DEVICE = 8
VLP_ERROR_EXISTS = 9
VLP_ERROR_BUSY = 10
VLP_TRAIN = 0
VLP_VALID = 1
VLP_TEST = 2
VLP_SPLITS = 3
VLP_FORMAT_AUTO = 0
VLP_FORMAT_TSV = 1
VLP_FORMAT_CSV = 2
VLP_FORMAT_NTRIPLES = 3
VLP_FORMAT_NQUADS = 4
VLP_FORMAT_TURTLE = 5
VLP_FORMAT_TRIG = 6
VLP_FORMATS = 7
VLP_HORIZONTAL = 0
VLP_VERTICAL = 1
VLP_PATH = 2
VLP_COMPONENTS = 3
VLP_MAX_COMPONENTS = 4
VLP_BOTH_SIDES = 0
VLP_HEADS = 1
VLP_TAILS = 2
VLP_BY_F = 0
VLP_BY_F_G = 1
VLP_BY_F_C = 2
VLP_BY_F_P = 3
VLP_MAX_PATHS = 8
VLP_MAX_REMOVED = 16
VLP_CALIBRATION_BINS = 10


class vlp_allocator(c.Structure):
    reallocate: Any
    release: Any
    user: int | None
    _fields_ = [
        ("reallocate", c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_void_p, c.c_size_t)),
        ("release", c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)),
        ("user", c.c_void_p),
    ]


class vlp_observer(c.Structure):
    log: Any
    progress: Any
    stop: Any
    user: int | None
    _fields_ = [
        ("log", c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)),
        ("progress", c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_int64, c.c_int64)),
        ("stop", c.CFUNCTYPE(c.c_bool, c.c_void_p)),
        ("user", c.c_void_p),
    ]


class vlp_triple(c.Structure):
    head: int
    relation: int
    tail: int
    _fields_ = [
        ("head", c.c_int32),
        ("relation", c.c_int32),
        ("tail", c.c_int32),
    ]


class vlp_dataset_options(c.Structure):
    version: int
    threads: int
    observer: Any
    _fields_ = [
        ("version", c.c_int32),
        ("threads", c.c_int32),
        ("observer", c.POINTER(vlp_observer)),
    ]

    @classmethod
    def default(cls) -> vlp_dataset_options:
        return cls(version=1, threads=0)


class vlp_named_triple(c.Structure):
    head: bytes | None
    relation: bytes | None
    tail: bytes | None
    _fields_ = [
        ("head", c.c_char_p),
        ("relation", c.c_char_p),
        ("tail", c.c_char_p),
    ]


class vlp_dataset_content(c.Structure):
    version: int
    triples: Any
    counts: Any
    entities: int
    relations: int
    entity_names: Any
    relation_names: Any
    entity_labels: Any
    entity_descriptions: Any
    relation_labels: Any
    relation_descriptions: Any
    _fields_ = [
        ("version", c.c_int32),
        ("triples", (c.POINTER(vlp_triple) * 3)),
        ("counts", (c.c_int64 * 3)),
        ("entities", c.c_int32),
        ("relations", c.c_int32),
        ("entity_names", c.POINTER(c.c_char_p)),
        ("relation_names", c.POINTER(c.c_char_p)),
        ("entity_labels", c.POINTER(c.c_char_p)),
        ("entity_descriptions", c.POINTER(c.c_char_p)),
        ("relation_labels", c.POINTER(c.c_char_p)),
        ("relation_descriptions", c.POINTER(c.c_char_p)),
    ]

    @classmethod
    def default(cls) -> vlp_dataset_content:
        return cls(version=2, triples=(None,), counts=(0,), entities=0, relations=0)


class vlp_dataset_stats(c.Structure):
    entities: int
    relations: int
    triples: Any
    duplicates: Any
    unseen_entities: Any
    unseen_triples: Any
    unseen_relations: Any
    labels: int
    bytes: int
    relation_labels: int
    graph_names: int
    _fields_ = [
        ("entities", c.c_int64),
        ("relations", c.c_int64),
        ("triples", (c.c_int64 * 3)),
        ("duplicates", (c.c_int64 * 3)),
        ("unseen_entities", (c.c_int64 * 3)),
        ("unseen_triples", (c.c_int64 * 3)),
        ("unseen_relations", (c.c_int64 * 3)),
        ("labels", c.c_int64),
        ("bytes", c.c_int64),
        ("relation_labels", c.c_int64),
        ("graph_names", c.c_int64),
    ]


class vlp_split_options(c.Structure):
    version: int
    threads: int
    valid: float
    test: float
    by_relation: bool
    keep_entities: bool
    seed: int
    observer: Any
    _fields_ = [
        ("version", c.c_int32),
        ("threads", c.c_int32),
        ("valid", c.c_double),
        ("test", c.c_double),
        ("by_relation", c.c_bool),
        ("keep_entities", c.c_bool),
        ("seed", c.c_uint64),
        ("observer", c.POINTER(vlp_observer)),
    ]

    @classmethod
    def default(cls) -> vlp_split_options:
        return cls(version=1, threads=0, valid=0.05, test=0.05, by_relation=False, keep_entities=True, seed=0)


class vlp_file_options(c.Structure):
    version: int
    format: int
    columns: Any
    column_names: Any
    separator: bytes
    header: bool
    keep_literals: bool
    keep_labels: bool
    language: bytes | None
    _fields_ = [
        ("version", c.c_int32),
        ("format", c.c_int),
        ("columns", (c.c_int32 * 3)),
        ("column_names", (c.c_char_p * 3)),
        ("separator", c.c_char),
        ("header", c.c_bool),
        ("keep_literals", c.c_bool),
        ("keep_labels", c.c_bool),
        ("language", c.c_char_p),
    ]

    @classmethod
    def default(cls) -> vlp_file_options:
        return cls(version=1, format=0, columns=(0,), column_names=(None,), separator=b"\0", header=False, keep_literals=False, keep_labels=False)


class vlp_import_report(c.Structure):
    entities: int
    relations: int
    triples: Any
    labels: int
    duplicates: int
    skipped: int
    relation_labels: int
    graph_names: int
    _fields_ = [
        ("entities", c.c_int64),
        ("relations", c.c_int64),
        ("triples", (c.c_int64 * 3)),
        ("labels", c.c_int64),
        ("duplicates", c.c_int64),
        ("skipped", c.c_int64),
        ("relation_labels", c.c_int64),
        ("graph_names", c.c_int64),
    ]


class vlp_family_options(c.Structure):
    version: int
    families: int
    generations: int
    held_out: float
    seed: int
    _fields_ = [
        ("version", c.c_int32),
        ("families", c.c_int32),
        ("generations", c.c_int32),
        ("held_out", c.c_double),
        ("seed", c.c_uint64),
    ]

    @classmethod
    def default(cls) -> vlp_family_options:
        return cls(version=1, families=40, generations=5, held_out=0.1, seed=0)


class vlp_random_graph_options(c.Structure):
    version: int
    entities: int
    triples: int
    relations: int
    held_out: float
    seed: int
    observer: Any
    _fields_ = [
        ("version", c.c_int32),
        ("entities", c.c_int32),
        ("triples", c.c_int64),
        ("relations", c.c_int32),
        ("held_out", c.c_double),
        ("seed", c.c_uint64),
        ("observer", c.POINTER(vlp_observer)),
    ]

    @classmethod
    def default(cls) -> vlp_random_graph_options:
        return cls(version=1, entities=100000, triples=500000, relations=200, held_out=0.01, seed=0)


class vlp_reference_options(c.Structure):
    version: int
    count: int
    max_distance: int
    per_head: int
    threads: int
    observer: Any
    _fields_ = [
        ("version", c.c_int32),
        ("count", c.c_int32),
        ("max_distance", c.c_int32),
        ("per_head", c.c_int32),
        ("threads", c.c_int32),
        ("observer", c.POINTER(vlp_observer)),
    ]

    @classmethod
    def default(cls) -> vlp_reference_options:
        return cls(version=1, count=8, max_distance=8, per_head=0, threads=0)


class vlp_query(c.Structure):
    entity: int
    relation: int
    left_out: int
    _fields_ = [
        ("entity", c.c_int32),
        ("relation", c.c_int32),
        ("left_out", c.c_int64),
    ]


class vlp_reference(c.Structure):
    edge: int
    distance: int
    _fields_ = [
        ("edge", c.c_int32),
        ("distance", c.c_int32),
    ]


class vlp_relation_pair(c.Structure):
    first: int
    second: int
    inverse: bool
    shared: int
    share: float
    leaked: int
    example_test: vlp_triple
    example_train: vlp_triple
    _fields_ = [
        ("first", c.c_int32),
        ("second", c.c_int32),
        ("inverse", c.c_bool),
        ("shared", c.c_int64),
        ("share", c.c_double),
        ("leaked", c.c_int64),
        ("example_test", vlp_triple),
        ("example_train", vlp_triple),
    ]


class vlp_audit(c.Structure):
    stats: vlp_dataset_stats
    overlap: Any
    overlap_example: Any
    pairs: Any
    pair_count: int
    leaked: int
    linked: int
    unreachable: int
    distance: Any
    train_queries: int
    train_copyable: int
    test_queries: int
    test_copyable: int
    train_references: float
    test_references: float
    unseen_example: Any
    _fields_ = [
        ("stats", vlp_dataset_stats),
        ("overlap", ((c.c_int64 * 3) * 3)),
        ("overlap_example", ((vlp_triple * 3) * 3)),
        ("pairs", c.POINTER(vlp_relation_pair)),
        ("pair_count", c.c_int64),
        ("leaked", c.c_int64),
        ("linked", c.c_int64),
        ("unreachable", c.c_int64),
        ("distance", (c.c_int64 * 16)),
        ("train_queries", c.c_int64),
        ("train_copyable", c.c_int64),
        ("test_queries", c.c_int64),
        ("test_copyable", c.c_int64),
        ("train_references", c.c_double),
        ("test_references", c.c_double),
        ("unseen_example", (c.c_int32 * 3)),
    ]


class vlp_audit_options(c.Structure):
    version: int
    threshold: float
    references: vlp_reference_options
    _fields_ = [
        ("version", c.c_int32),
        ("threshold", c.c_double),
        ("references", vlp_reference_options),
    ]

    @classmethod
    def default(cls) -> vlp_audit_options:
        return cls(version=1, threshold=0.8, references=(1, 8, 8, 0, 0, None,))


class vlp_history_point(c.Structure):
    step: int
    losses: Any
    valid_mrr: float
    _fields_ = [
        ("step", c.c_int64),
        ("losses", (c.c_double * 4)),
        ("valid_mrr", c.c_double),
    ]


class vlp_train_options(c.Structure):
    version: int
    recipe: bytes | None
    settings: Any
    setting_count: int
    device: bytes | None
    base: bytes | None
    resume: bool
    observer: Any
    time: float
    metrics: Any
    user: int | None
    _fields_ = [
        ("version", c.c_int32),
        ("recipe", c.c_char_p),
        ("settings", c.POINTER(c.c_char_p)),
        ("setting_count", c.c_int32),
        ("device", c.c_char_p),
        ("base", c.c_char_p),
        ("resume", c.c_bool),
        ("observer", c.POINTER(vlp_observer)),
        ("time", c.c_double),
        ("metrics", c.CFUNCTYPE(None, c.c_void_p, c.POINTER(vlp_history_point))),
        ("user", c.c_void_p),
    ]

    @classmethod
    def default(cls) -> vlp_train_options:
        return cls(version=3, setting_count=0, resume=False, time=0)


class vlp_train_report(c.Structure):
    steps: int
    seconds: float
    steps_per_second: float
    losses: Any
    valid_mrr: float
    call_steps: int
    _fields_ = [
        ("steps", c.c_int64),
        ("seconds", c.c_double),
        ("steps_per_second", c.c_double),
        ("losses", (c.c_double * 4)),
        ("valid_mrr", c.c_double),
        ("call_steps", c.c_int64),
    ]


class vlp_setting_info(c.Structure):
    name: bytes | None
    section: bytes | None
    fallback: bytes | None
    range: bytes | None
    help: bytes | None
    _fields_ = [
        ("name", c.c_char_p),
        ("section", c.c_char_p),
        ("fallback", c.c_char_p),
        ("range", c.c_char_p),
        ("help", c.c_char_p),
    ]


class vlp_tune_trial(c.Structure):
    candidate: int
    rung: int
    part: int
    mrr: float
    seconds: float
    settings: bytes | None
    _fields_ = [
        ("candidate", c.c_int64),
        ("rung", c.c_int32),
        ("part", c.c_int32),
        ("mrr", c.c_double),
        ("seconds", c.c_double),
        ("settings", c.c_char_p),
    ]


class vlp_tune_state(c.Structure):
    trials: Any
    count: int
    last: Any
    running: int
    total: int
    seconds: float
    seconds_left: float
    _fields_ = [
        ("trials", c.POINTER(vlp_tune_trial)),
        ("count", c.c_int64),
        ("last", c.POINTER(vlp_tune_trial)),
        ("running", c.c_int32),
        ("total", c.c_int64),
        ("seconds", c.c_double),
        ("seconds_left", c.c_double),
    ]


class vlp_tune_options(c.Structure):
    version: int
    recipe: bytes | None
    settings: Any
    setting_count: int
    device: bytes | None
    base: bytes | None
    space: bytes | None
    component: int
    trials: int
    time: float
    observer: Any
    watch: Any
    user: int | None
    _fields_ = [
        ("version", c.c_int32),
        ("recipe", c.c_char_p),
        ("settings", c.POINTER(c.c_char_p)),
        ("setting_count", c.c_int32),
        ("device", c.c_char_p),
        ("base", c.c_char_p),
        ("space", c.c_char_p),
        ("component", c.c_int),
        ("trials", c.c_int64),
        ("time", c.c_double),
        ("observer", c.POINTER(vlp_observer)),
        ("watch", c.CFUNCTYPE(None, c.c_void_p, c.POINTER(vlp_tune_state))),
        ("user", c.c_void_p),
    ]

    @classmethod
    def default(cls) -> vlp_tune_options:
        return cls(version=1, setting_count=0, component=2, trials=0, time=0)


class vlp_tune_report(c.Structure):
    trials: int
    call_trials: int
    seconds: float
    complete: bool
    best: vlp_tune_trial
    settings: bytes
    trial_threads: int
    at_once: int
    _fields_ = [
        ("trials", c.c_int64),
        ("call_trials", c.c_int64),
        ("seconds", c.c_double),
        ("complete", c.c_bool),
        ("best", vlp_tune_trial),
        ("settings", (c.c_char * 1024)),
        ("trial_threads", c.c_int32),
        ("at_once", c.c_int32),
    ]


class vlp_run_options(c.Structure):
    version: int
    data: bytes | None
    device: bytes | None
    threads: int
    observer: Any
    _fields_ = [
        ("version", c.c_int32),
        ("data", c.c_char_p),
        ("device", c.c_char_p),
        ("threads", c.c_int32),
        ("observer", c.POINTER(vlp_observer)),
    ]

    @classmethod
    def default(cls) -> vlp_run_options:
        return cls(version=1, threads=0)


class vlp_metrics(c.Structure):
    queries: int
    mrr: float
    mr: float
    amri: float
    hits1: float
    hits3: float
    hits10: float
    _fields_ = [
        ("queries", c.c_int64),
        ("mrr", c.c_double),
        ("mr", c.c_double),
        ("amri", c.c_double),
        ("hits1", c.c_double),
        ("hits3", c.c_double),
        ("hits10", c.c_double),
    ]


class vlp_group(c.Structure):
    value: int
    metrics: vlp_metrics
    alone: Any
    _fields_ = [
        ("value", c.c_int32),
        ("metrics", vlp_metrics),
        ("alone", (c.c_double * 4)),
    ]


class vlp_groups(c.Structure):
    items: Any
    count: int
    _fields_ = [
        ("items", c.POINTER(vlp_group)),
        ("count", c.c_int64),
    ]


class vlp_interval(c.Structure):
    low: float
    middle: float
    high: float
    _fields_ = [
        ("low", c.c_double),
        ("middle", c.c_double),
        ("high", c.c_double),
    ]


class vlp_evaluation(c.Structure):
    split: int
    sides: int
    queries: int
    components: int
    weights: Any
    horizontal_only: bool
    both: vlp_metrics
    head: vlp_metrics
    tail: vlp_metrics
    optimistic: vlp_metrics
    pessimistic: vlp_metrics
    alone: Any
    frequency: vlp_metrics
    vote: vlp_metrics
    macro_mrr: float
    interval: vlp_interval
    auc_pr: float
    control: vlp_metrics
    control_gain: vlp_interval
    by_relation: vlp_groups
    by_side: vlp_groups
    by_mapping: vlp_groups
    by_distance: vlp_groups
    ranks: int | None
    candidates: int
    pagerank: vlp_metrics
    among: int
    hits10_among: vlp_interval
    pagerank_hits10_among: float
    triples: int
    split_triples: int
    sample: int
    _fields_ = [
        ("split", c.c_int),
        ("sides", c.c_int),
        ("queries", c.c_int64),
        ("components", c.c_uint),
        ("weights", (c.c_double * 4)),
        ("lambda", c.c_double),
        ("horizontal_only", c.c_bool),
        ("both", vlp_metrics),
        ("head", vlp_metrics),
        ("tail", vlp_metrics),
        ("optimistic", vlp_metrics),
        ("pessimistic", vlp_metrics),
        ("alone", (vlp_metrics * 4)),
        ("frequency", vlp_metrics),
        ("vote", vlp_metrics),
        ("macro_mrr", c.c_double),
        ("interval", vlp_interval),
        ("auc_pr", c.c_double),
        ("control", vlp_metrics),
        ("control_gain", vlp_interval),
        ("by_relation", vlp_groups),
        ("by_side", vlp_groups),
        ("by_mapping", vlp_groups),
        ("by_distance", vlp_groups),
        ("ranks", c.c_void_p),
        ("candidates", c.c_int64),
        ("pagerank", vlp_metrics),
        ("among", c.c_int32),
        ("hits10_among", vlp_interval),
        ("pagerank_hits10_among", c.c_double),
        ("triples", c.c_int64),
        ("split_triples", c.c_int64),
        ("sample", c.c_int32),
    ]


class vlp_evaluation_options(c.Structure):
    version: int
    split: int
    filter: int
    sides: int
    candidates: Any
    candidate_count: int
    control: bool
    observer: Any
    graph: bool
    among: int
    pagerank: bool
    triples: int
    sample: int
    seed: int
    _fields_ = [
        ("version", c.c_int32),
        ("split", c.c_int),
        ("filter", c.c_uint),
        ("sides", c.c_int),
        ("candidates", c.POINTER(c.c_int32)),
        ("candidate_count", c.c_int64),
        ("control", c.c_bool),
        ("observer", c.POINTER(vlp_observer)),
        ("graph", c.c_bool),
        ("among", c.c_int32),
        ("pagerank", c.c_bool),
        ("triples", c.c_int64),
        ("sample", c.c_int32),
        ("seed", c.c_uint64),
    ]

    @classmethod
    def default(cls) -> vlp_evaluation_options:
        return cls(version=3, split=2, filter=0, sides=0, candidate_count=0, control=False, graph=False, among=0, pagerank=False, triples=0, sample=0, seed=0)


class vlp_history(c.Structure):
    items: Any
    count: int
    _fields_ = [
        ("items", c.POINTER(vlp_history_point)),
        ("count", c.c_int64),
    ]


class vlp_embeddings(c.Structure):
    values: Any
    rows: int
    columns: int
    _fields_ = [
        ("values", c.POINTER(c.c_float)),
        ("rows", c.c_int64),
        ("columns", c.c_int64),
    ]


class vlp_run_info(c.Structure):
    folder: bytes | None
    data: bytes | None
    model: bytes | None
    dim: int
    step: int
    valid_mrr: float
    components: int
    weights: Any
    copies: bool
    horizontal_only: bool
    references: int
    graph: bytes | None
    _fields_ = [
        ("folder", c.c_char_p),
        ("data", c.c_char_p),
        ("model", c.c_char_p),
        ("dim", c.c_int32),
        ("step", c.c_int64),
        ("valid_mrr", c.c_double),
        ("components", c.c_uint),
        ("weights", (c.c_double * 4)),
        ("copies", c.c_bool),
        ("horizontal_only", c.c_bool),
        ("lambda", c.c_double),
        ("references", c.c_int32),
        ("graph", c.c_char_p),
    ]


class vlp_answer_reference(c.Structure):
    triple: vlp_triple
    distance: int
    _fields_ = [
        ("triple", vlp_triple),
        ("distance", c.c_int32),
    ]


class vlp_path_triple(c.Structure):
    triple: vlp_triple
    forward: bool
    _fields_ = [
        ("triple", vlp_triple),
        ("forward", c.c_bool),
    ]


class vlp_path(c.Structure):
    weight: float
    triples: Any
    count: int
    _fields_ = [
        ("weight", c.c_double),
        ("triples", c.POINTER(vlp_path_triple)),
        ("count", c.c_int32),
    ]


class vlp_support(c.Structure):
    triples: Any
    count: int
    rank_before: float
    rank: float
    score: float
    path: float
    _fields_ = [
        ("triples", c.POINTER(vlp_triple)),
        ("count", c.c_int32),
        ("rank_before", c.c_double),
        ("rank", c.c_double),
        ("score", c.c_double),
        ("path", c.c_double),
    ]


class vlp_prediction(c.Structure):
    entity: int
    known: bool
    score: float
    parts: Any
    contributions: Any
    paths: Any
    path_count: int
    support: Any
    _fields_ = [
        ("entity", c.c_int32),
        ("known", c.c_bool),
        ("score", c.c_double),
        ("parts", (c.c_double * 4)),
        ("contributions", c.POINTER(c.c_double)),
        ("paths", c.POINTER(vlp_path)),
        ("path_count", c.c_int32),
        ("support", c.POINTER(vlp_support)),
    ]


class vlp_answers(c.Structure):
    query: vlp_query
    predictions: Any
    prediction_count: int
    references: Any
    reference_count: int
    candidate_count: int
    _fields_ = [
        ("query", vlp_query),
        ("predictions", c.POINTER(vlp_prediction)),
        ("prediction_count", c.c_int32),
        ("references", c.POINTER(vlp_answer_reference)),
        ("reference_count", c.c_int32),
        ("candidate_count", c.c_int64),
    ]


class vlp_condition(c.Structure):
    relation: int
    entity: int
    _fields_ = [
        ("relation", c.c_int32),
        ("entity", c.c_int32),
    ]


class vlp_candidate_options(c.Structure):
    version: int
    entities: Any
    entity_count: int
    conditions: Any
    condition_count: int
    seen: bool
    _fields_ = [
        ("version", c.c_int32),
        ("entities", c.POINTER(c.c_int32)),
        ("entity_count", c.c_int64),
        ("conditions", c.POINTER(vlp_condition)),
        ("condition_count", c.c_int32),
        ("seen", c.c_bool),
    ]

    @classmethod
    def default(cls) -> vlp_candidate_options:
        return cls(version=1, entity_count=0, condition_count=0, seen=False)


class vlp_predict_options(c.Structure):
    version: int
    count: int
    known: bool
    explain: bool
    filter: int
    observer: Any
    paths: int
    candidates: Any
    _fields_ = [
        ("version", c.c_int32),
        ("count", c.c_int32),
        ("known", c.c_bool),
        ("explain", c.c_bool),
        ("filter", c.c_uint),
        ("observer", c.POINTER(vlp_observer)),
        ("paths", c.c_int32),
        ("candidates", c.POINTER(vlp_candidate_options)),
    ]

    @classmethod
    def default(cls) -> vlp_predict_options:
        return cls(version=3, count=10, known=False, explain=False, filter=0, paths=3)


class vlp_what_if(c.Structure):
    rank_before: float
    score_before: float
    parts_before: Any
    rank: float
    score: float
    parts: Any
    _fields_ = [
        ("rank_before", c.c_double),
        ("score_before", c.c_double),
        ("parts_before", (c.c_double * 4)),
        ("rank", c.c_double),
        ("score", c.c_double),
        ("parts", (c.c_double * 4)),
    ]


class vlp_entity_pair(c.Structure):
    head: int
    tail: int
    _fields_ = [
        ("head", c.c_int32),
        ("tail", c.c_int32),
    ]


class vlp_relation_prediction(c.Structure):
    relation: int
    known: bool
    edge: int
    score: float
    tail_log_probability: float
    head_log_probability: float
    f: float
    parts: Any
    _fields_ = [
        ("relation", c.c_int32),
        ("known", c.c_bool),
        ("edge", c.c_int64),
        ("score", c.c_double),
        ("tail_log_probability", c.c_double),
        ("head_log_probability", c.c_double),
        ("f", c.c_double),
        ("parts", (c.c_double * 4)),
    ]


class vlp_relation_answers(c.Structure):
    pair: vlp_entity_pair
    predictions: Any
    prediction_count: int
    _fields_ = [
        ("pair", vlp_entity_pair),
        ("predictions", c.POINTER(vlp_relation_prediction)),
        ("prediction_count", c.c_int32),
    ]


class vlp_score(c.Structure):
    score: float
    parts: Any
    tail: float
    head: float
    probability: float
    known: bool
    _fields_ = [
        ("score", c.c_double),
        ("parts", (c.c_double * 4)),
        ("tail", c.c_double),
        ("head", c.c_double),
        ("probability", c.c_double),
        ("known", c.c_bool),
    ]


class vlp_score_options(c.Structure):
    version: int
    uncalibrated: bool
    prior: float
    observer: Any
    _fields_ = [
        ("version", c.c_int32),
        ("uncalibrated", c.c_bool),
        ("prior", c.c_double),
        ("observer", c.POINTER(vlp_observer)),
    ]

    @classmethod
    def default(cls) -> vlp_score_options:
        return cls(version=1, uncalibrated=False, prior=0.5)


class vlp_calibration_bin(c.Structure):
    weight: float
    predicted: float
    observed: float
    triples: int
    _fields_ = [
        ("weight", c.c_double),
        ("predicted", c.c_double),
        ("observed", c.c_double),
        ("triples", c.c_int64),
    ]


class vlp_calibration(c.Structure):
    positives: int
    negatives: int
    intercept: float
    slope: float
    brier: float
    log_loss: float
    bins: Any
    _fields_ = [
        ("positives", c.c_int64),
        ("negatives", c.c_int64),
        ("intercept", c.c_double),
        ("slope", c.c_double),
        ("brier", c.c_double),
        ("log_loss", c.c_double),
        ("bins", (vlp_calibration_bin * 10)),
    ]


class vlp_calibration_options(c.Structure):
    version: int
    exchanges: int
    fresh: bool
    seed: int
    observer: Any
    _fields_ = [
        ("version", c.c_int32),
        ("exchanges", c.c_int32),
        ("fresh", c.c_bool),
        ("seed", c.c_uint64),
        ("observer", c.POINTER(vlp_observer)),
    ]

    @classmethod
    def default(cls) -> vlp_calibration_options:
        return cls(version=1, exchanges=4, fresh=False, seed=0)


class vlp_relation_threshold(c.Structure):
    threshold: float
    own: bool
    positives: int
    negatives: int
    test_positives: int
    test_negatives: int
    test_accuracy: float
    _fields_ = [
        ("threshold", c.c_double),
        ("own", c.c_bool),
        ("positives", c.c_int64),
        ("negatives", c.c_int64),
        ("test_positives", c.c_int64),
        ("test_negatives", c.c_int64),
        ("test_accuracy", c.c_double),
    ]


class vlp_classification(c.Structure):
    threshold: float
    relations: Any
    relation_count: int
    positives: int
    negatives: int
    accuracy: float
    test_positives: int
    test_negatives: int
    test_accuracy: float
    test_true_rate: float
    test_false_rate: float
    _fields_ = [
        ("threshold", c.c_double),
        ("relations", c.POINTER(vlp_relation_threshold)),
        ("relation_count", c.c_int32),
        ("positives", c.c_int64),
        ("negatives", c.c_int64),
        ("accuracy", c.c_double),
        ("test_positives", c.c_int64),
        ("test_negatives", c.c_int64),
        ("test_accuracy", c.c_double),
        ("test_true_rate", c.c_double),
        ("test_false_rate", c.c_double),
    ]


class vlp_classification_options(c.Structure):
    version: int
    exchanges: int
    minimum: int
    seed: int
    observer: Any
    _fields_ = [
        ("version", c.c_int32),
        ("exchanges", c.c_int32),
        ("minimum", c.c_int32),
        ("seed", c.c_uint64),
        ("observer", c.POINTER(vlp_observer)),
    ]

    @classmethod
    def default(cls) -> vlp_classification_options:
        return cls(version=1, exchanges=2, minimum=10, seed=0)


class vlp_mine_options(c.Structure):
    version: int
    count: int
    per_query: int
    relation: int
    prior: float
    state: bytes | None
    resume: bool
    observer: Any
    candidates: Any
    sides: int
    _fields_ = [
        ("version", c.c_int32),
        ("count", c.c_int32),
        ("per_query", c.c_int32),
        ("relation", c.c_int32),
        ("prior", c.c_double),
        ("state", c.c_char_p),
        ("resume", c.c_bool),
        ("observer", c.POINTER(vlp_observer)),
        ("candidates", c.POINTER(vlp_candidate_options)),
        ("sides", c.c_int),
    ]

    @classmethod
    def default(cls) -> vlp_mine_options:
        return cls(version=2, count=100, per_query=10, relation=-1, prior=0.5, resume=False, sides=0)


class vlp_mined(c.Structure):
    triple: vlp_triple
    score: float
    parts: Any
    probability: float
    tail: float
    head: float
    _fields_ = [
        ("triple", vlp_triple),
        ("score", c.c_double),
        ("parts", (c.c_double * 4)),
        ("probability", c.c_double),
        ("tail", c.c_double),
        ("head", c.c_double),
    ]


class vlp_mining(c.Structure):
    items: Any
    count: int
    queries: int
    possible_queries: int
    candidates: int
    possible_triples: int
    _fields_ = [
        ("items", c.POINTER(vlp_mined)),
        ("count", c.c_int64),
        ("queries", c.c_int64),
        ("possible_queries", c.c_int64),
        ("candidates", c.c_int64),
        ("possible_triples", c.c_int64),
    ]


class vlp_graph_report(c.Structure):
    triples: int
    new_triples: int
    unknown_triples: int
    unknown_entities: int
    unknown_relations: int
    unknown_others: int
    new_entities: int
    _fields_ = [
        ("triples", c.c_int64),
        ("new_triples", c.c_int64),
        ("unknown_triples", c.c_int64),
        ("unknown_entities", c.c_int64),
        ("unknown_relations", c.c_int64),
        ("unknown_others", c.c_int64),
        ("new_entities", c.c_int64),
    ]


# Name: result, parameters.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "vlp_error_message": (c.c_char_p, []),
    "vlp_version": (c.c_char_p, []),
    "vlp_allocator_set": (None, [c.POINTER(vlp_allocator)]),
    "vlp_is_loading": (c.c_bool, []),
    "vlp_dataset_open": (c.c_int, [c.POINTER(c.c_void_p), c.c_char_p, c.POINTER(vlp_dataset_options)]),
    "vlp_dataset_free": (None, [c.c_void_p]),
    "vlp_dataset_from_names": (c.c_int, [c.POINTER(c.c_void_p), c.POINTER(c.POINTER(vlp_named_triple)), c.POINTER(c.c_int64), c.POINTER(vlp_dataset_options)]),
    "vlp_dataset_from_ids": (c.c_int, [c.POINTER(c.c_void_p), c.POINTER(vlp_dataset_content), c.POINTER(vlp_dataset_options)]),
    "vlp_dataset_entity_count": (c.c_int32, [c.c_void_p]),
    "vlp_dataset_relation_count": (c.c_int32, [c.c_void_p]),
    "vlp_dataset_entity_name": (c.c_char_p, [c.c_void_p, c.c_int32]),
    "vlp_dataset_relation_name": (c.c_char_p, [c.c_void_p, c.c_int32]),
    "vlp_dataset_entity_label": (c.c_char_p, [c.c_void_p, c.c_int32]),
    "vlp_dataset_entity_description": (c.c_char_p, [c.c_void_p, c.c_int32]),
    "vlp_dataset_relation_label": (c.c_char_p, [c.c_void_p, c.c_int32]),
    "vlp_dataset_relation_description": (c.c_char_p, [c.c_void_p, c.c_int32]),
    "vlp_dataset_find_entity": (c.c_int, [c.POINTER(c.c_int32), c.c_void_p, c.c_char_p]),
    "vlp_dataset_find_relation": (c.c_int, [c.POINTER(c.c_int32), c.c_void_p, c.c_char_p]),
    "vlp_dataset_triples": (c.POINTER(vlp_triple), [c.c_void_p, c.c_int, c.POINTER(c.c_int64)]),
    "vlp_dataset_describe": (c.c_int, [c.POINTER(vlp_dataset_stats), c.c_void_p]),
    "vlp_filter_new": (c.c_int, [c.POINTER(c.c_void_p), c.c_void_p, c.c_uint]),
    "vlp_filter_answers": (c.POINTER(c.c_int32), [c.c_void_p, c.c_int32, c.c_int32, c.POINTER(c.c_int64)]),
    "vlp_filter_has": (c.c_bool, [c.c_void_p, c.c_int32, c.c_int32, c.c_int32]),
    "vlp_filter_free": (None, [c.c_void_p]),
    "vlp_format_name": (c.c_char_p, [c.c_int]),
    "vlp_split_file": (c.c_int, [c.POINTER(vlp_import_report), c.c_char_p, c.c_char_p, c.POINTER(vlp_split_options)]),
    "vlp_import_file": (c.c_int, [c.POINTER(vlp_import_report), c.c_char_p, c.c_char_p, c.POINTER(vlp_file_options), c.POINTER(vlp_split_options)]),
    "vlp_import_wordnet": (c.c_int, [c.POINTER(vlp_import_report), c.c_char_p, c.c_char_p, c.c_bool, c.POINTER(vlp_split_options)]),
    "vlp_family_generate": (c.c_int, [c.POINTER(vlp_import_report), c.c_char_p, c.POINTER(vlp_family_options)]),
    "vlp_random_graph_generate": (c.c_int, [c.POINTER(vlp_import_report), c.c_char_p, c.POINTER(vlp_random_graph_options)]),
    "vlp_distance_from": (c.c_int, [c.POINTER(c.c_int32), c.c_void_p, c.c_int32, c.c_int32]),
    "vlp_distance_pairs": (c.c_int, [c.POINTER(c.c_int32), c.c_void_p, c.POINTER(vlp_triple), c.c_int64, c.c_int32]),
    "vlp_references_find": (c.c_int, [c.POINTER(c.c_void_p), c.c_void_p, c.POINTER(vlp_query), c.c_int64, c.POINTER(vlp_reference_options)]),
    "vlp_references_get": (c.POINTER(vlp_reference), [c.c_void_p, c.c_int64, c.POINTER(c.c_int32)]),
    "vlp_references_free": (None, [c.c_void_p]),
    "vlp_audit_run": (c.c_int, [c.POINTER(c.POINTER(vlp_audit)), c.c_void_p, c.POINTER(vlp_audit_options)]),
    "vlp_audit_free": (None, [c.POINTER(vlp_audit)]),
    "vlp_component_name": (c.c_char_p, [c.c_int]),
    "vlp_train": (c.c_int, [c.POINTER(vlp_train_report), c.c_char_p, c.c_char_p, c.POINTER(vlp_train_options)]),
    "vlp_train_dataset": (c.c_int, [c.POINTER(vlp_train_report), c.c_void_p, c.c_char_p, c.POINTER(vlp_train_options)]),
    "vlp_setting_describe": (c.c_bool, [c.POINTER(vlp_setting_info), c.c_int32]),
    "vlp_tune": (c.c_int, [c.POINTER(vlp_tune_report), c.c_char_p, c.c_char_p, c.POINTER(vlp_tune_options)]),
    "vlp_run_open": (c.c_int, [c.POINTER(c.c_void_p), c.c_char_p, c.POINTER(vlp_run_options)]),
    "vlp_run_free": (None, [c.c_void_p]),
    "vlp_run_dataset": (c.c_void_p, [c.c_void_p]),
    "vlp_run_evaluate": (c.c_int, [c.POINTER(c.POINTER(vlp_evaluation)), c.c_void_p, c.POINTER(vlp_evaluation_options)]),
    "vlp_evaluation_free": (None, [c.POINTER(vlp_evaluation)]),
    "vlp_evaluation_rank": (c.c_double, [c.POINTER(vlp_evaluation), c.c_int, c.c_int64]),
    "vlp_evaluation_compare": (c.c_int, [c.POINTER(vlp_interval), c.POINTER(vlp_evaluation), c.c_int, c.POINTER(vlp_evaluation), c.c_int]),
    "vlp_run_history": (c.c_int, [c.POINTER(c.POINTER(vlp_history)), c.c_void_p]),
    "vlp_history_free": (None, [c.POINTER(vlp_history)]),
    "vlp_run_setting": (c.c_bool, [c.c_char_p, c.c_void_p, c.c_int32]),
    "vlp_run_checksum": (c.c_char_p, [c.c_void_p]),
    "vlp_run_version": (c.c_char_p, [c.c_void_p]),
    "vlp_run_entity_embeddings": (c.c_int, [c.POINTER(vlp_embeddings), c.c_void_p]),
    "vlp_run_export": (c.c_int, [c.c_void_p, c.c_char_p]),
    "vlp_run_describe": (None, [c.POINTER(vlp_run_info), c.c_void_p]),
    "vlp_run_predict": (c.c_int, [c.POINTER(c.c_void_p), c.c_void_p, c.POINTER(vlp_query), c.c_int64, c.POINTER(vlp_predict_options)]),
    "vlp_predictions_get": (c.POINTER(vlp_answers), [c.c_void_p, c.c_int64]),
    "vlp_predictions_free": (None, [c.c_void_p]),
    "vlp_run_explain": (c.c_int, [c.POINTER(c.c_void_p), c.c_void_p, c.POINTER(vlp_query), c.POINTER(c.c_int32), c.c_int64, c.POINTER(vlp_predict_options)]),
    "vlp_run_what_if": (c.c_int, [c.POINTER(vlp_what_if), c.c_void_p, vlp_query, c.c_int32, c.POINTER(vlp_triple), c.c_int32, c.POINTER(vlp_predict_options)]),
    "vlp_run_predict_relations": (c.c_int, [c.POINTER(c.c_void_p), c.c_void_p, c.POINTER(vlp_entity_pair), c.c_int64, c.POINTER(vlp_predict_options)]),
    "vlp_relation_predictions_get": (c.POINTER(vlp_relation_answers), [c.c_void_p, c.c_int64]),
    "vlp_relation_predictions_free": (None, [c.c_void_p]),
    "vlp_run_score": (c.c_int, [c.POINTER(vlp_score), c.c_void_p, c.POINTER(vlp_triple), c.c_int64, c.POINTER(vlp_score_options)]),
    "vlp_run_calibrate": (c.c_int, [c.POINTER(vlp_calibration), c.c_void_p, c.POINTER(vlp_calibration_options)]),
    "vlp_run_classify": (c.c_int, [c.POINTER(c.POINTER(vlp_classification)), c.c_void_p, c.POINTER(vlp_classification_options)]),
    "vlp_classification_holds": (c.c_bool, [c.POINTER(vlp_classification), c.c_int32, c.c_double]),
    "vlp_classification_free": (None, [c.POINTER(vlp_classification)]),
    "vlp_run_mine": (c.c_int, [c.POINTER(c.POINTER(vlp_mining)), c.c_void_p, c.POINTER(vlp_mine_options)]),
    "vlp_mining_free": (None, [c.POINTER(vlp_mining)]),
    "vlp_run_use_graph": (c.c_int, [c.POINTER(vlp_graph_report), c.c_void_p, c.c_char_p, c.POINTER(vlp_observer)]),
    "vlp_run_graph_dataset": (c.c_void_p, [c.c_void_p]),
    "vlp_run_graph_triples": (c.POINTER(vlp_triple), [c.c_void_p, c.POINTER(c.c_int64)]),
    "vlp_triple_reader_open": (c.c_int, [c.POINTER(c.c_void_p), c.c_void_p, c.c_char_p, c.c_bool]),
    "vlp_triple_reader_next": (c.c_int, [c.POINTER(vlp_triple), c.POINTER(c.c_bool), c.c_void_p]),
    "vlp_triple_reader_line": (c.c_int64, [c.c_void_p]),
    "vlp_triple_reader_free": (None, [c.c_void_p]),
    "vlp_query_of": (vlp_query, [c.c_void_p, vlp_triple]),
}
