"""Figures of the paper (Li et al., To Copy Rather Than Memorize, ACL 2023), by the label of their table or
figure in its source, and of other publications. LEAK: figures of its authors' code, which looks at the distance to the
true answer while it ranks (docs/reproduction.md)."""

# tab. mainresult: MRR, H@1, H@3, H@10; None where the paper has none.
MAIN = {
    "WN18RR": {
        "transe": (.226, None, None, .501),
        "quate": (.481, .436, .500, .564),
        "pairre": (.455, .413, .469, .539),
        "distmult": (.439, .392, .453, .534),
        "distmult-vlp": (.462, .421, .474, .545),
        "complex": (.466, .423, .484, .552),
        "complex-vlp": (.494, .450, .508, .580),
        "rotate": (.476, .428, .492, .571),
        "rotate-vlp": (.498, .455, .514, .582),
    },
    "FB15k-237": {
        "transe": (.294, None, None, .465),
        "quate": (.311, .221, .342, .495),
        "pairre": (.348, .254, .384, .539),
        "distmult": (.308, .220, .337, .485),
        "distmult-vlp": (.347, .256, .379, .528),
        "complex": (.328, .235, .354, .511),
        "complex-vlp": (.354, .258, .396, .536),
        "rotate": (.338, .241, .375, .533),
        "rotate-vlp": (.362, .271, .397, .542),
    },
}
# Its base models are self-adversarial ones: tab. kgered has the same figures as X-Adv.
for _rows in MAIN.values():
    for _model in ("distmult", "complex", "rotate"):
        _rows[f"{_model}-adv"] = _rows[_model]
LEAK = {("WN18RR", "distmult-vlp"), ("WN18RR", "complex-vlp"), ("WN18RR", "rotate-vlp"), ("FB15k-237", "complex-vlp")}

# tab. distanceresult, and fig. Fig-2a for the shares: MRR at distances 1 to 4 of WN18RR.
DISTANCE = {
    "distmult": (.971, .331, .293, .039),
    "distmult-vlp": (.989, .345, .328, .053),
    "complex": (.979, .367, .396, .058),
    "complex-vlp": (.985, .400, .449, .102),
    "rotate": (.986, .375, .378, .091),
    "rotate-vlp": (.991, .391, .456, .111),
}
# fig. Fig-2b: the same of FB15k-237, plain models alone; no test triple has distance 1.
DISTANCE_FB = {
    "distmult": (None, .305, .211, .009),
    "complex": (None, .326, .242, .014),
    "rotate": (None, .349, .283, .026),
}
SHARES = {"WN18RR": (.477, .127, .293, .103), "FB15k-237": (0, .738, .260, .002)}

# tab. fineresult: MRR of RotatE and RotatE-VLP by relation of WN18RR.
RELATION = {
    "hypernym": (.154, .191),
    "instance_hypernym": (.324, .376),
    "member_meronym": (.255, .269),
    "synset_domain_topic_of": (.334, .411),
    "has_part": (.205, .220),
    "member_of_domain_usage": (.277, .375),
    "member_of_domain_region": (.243, .391),
    "derivationally_related_form": (.957, .958),
    "also_see": (.627, .635),
    "verb_group": (.968, .968),
    "similar_to": (1.0, 1.0),
}

# tab. RMP: MRR of RotatE and RotatE-VLP by side and mapping of FB15k-237.
MAPPING = {
    ("head", "1-1"): (.498, .504),
    ("head", "1-N"): (.475, .478),
    ("head", "N-1"): (.088, .126),
    ("head", "N-N"): (.260, .286),
    ("tail", "1-1"): (.490, .499),
    ("tail", "1-N"): (.071, .093),
    ("tail", "N-1"): (.747, .770),
    ("tail", "N-N"): (.367, .388),
}

# fig. number: MRR on WN18RR with N references; its N = 0 is the plain base.
REFERENCES = {
    "rotate-vlp": {0: .476, 2: .490, 4: .495, 6: .497, 8: .498, 10: .498},
    "complex-vlp": {0: .466, 2: .483, 4: .489, 6: .493, 8: .494, 10: .494},
    "distmult-vlp": {0: .439, 2: .456, 4: .460, 6: .461, 8: .462, 10: .461},
}

# tab. ablation (VLP) and tab. kgered (plain): MRR, H@10 on WN18RR and on FB15k-237.
RED = {
    ("distmult-vlp", "red"): (.462, .545, .347, .528),
    ("distmult-vlp", "without-pre"): (.456, .537, .338, .518),
    ("distmult-vlp", "without-post"): (.458, .542, .344, .525),
    ("complex-vlp", "red"): (.494, .580, .354, .536),
    ("complex-vlp", "without-pre"): (.491, .579, .344, .529),
    ("complex-vlp", "without-post"): (.493, .580, .345, .531),
    ("rotate-vlp", "red"): (.498, .582, .362, .542),
    ("rotate-vlp", "without-pre"): (.493, .578, .355, .540),
    ("rotate-vlp", "without-post"): (.496, .580, .359, .539),
    ("distmult", "self-adversarial"): (.439, .534, .308, .485),
    ("distmult", "red"): (.445, .539, .315, .491),
    ("complex", "self-adversarial"): (.466, .552, .328, .511),
    ("complex", "red"): (.470, .554, .335, .516),
    ("rotate", "self-adversarial"): (.476, .571, .338, .533),
    ("rotate", "red"): (.478, .572, .344, .536),
}

# GraIL's splits: Hits@10 among 50 of NBFNet, MRR of RED-GNN.
INDUCTIVE = {
    "WN18RR_v1": (0.948, 0.701),
    "WN18RR_v2": (0.905, 0.690),
    "WN18RR_v3": (0.893, 0.427),
    "WN18RR_v4": (0.890, 0.651),
    "fb237_v1": (0.834, 0.369),
    "fb237_v2": (0.949, 0.469),
    "fb237_v3": (0.951, 0.445),
    "fb237_v4": (0.960, 0.442),
}

# Times of others: what, on what, how long.
TIMES = [
    ("the paper's code, RotatE-VLP on WN18RR, 80,000 steps", "one H200, 16 cores to load", "5.8 h (259 ms per step)"),
    ("RotatE's code on WN18RR, 80,000 steps, without VLP", "one H200", "36 min (27 ms per step)"),
    ("RED-GNN on FB15k-237, one epoch", "as published", "5 h"),
    ("NBFNet", "as published", "four V100"),
]
