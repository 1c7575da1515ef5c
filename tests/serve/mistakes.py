"""Requests that are wrong, and the status each is answered with."""
import json


def mistakes(triple):
    """(method, path, body, status)"""
    head, relation, tail = triple
    ok = f"head={head}&relation={relation}"
    many = ",".join(['{"head":"a","relation":"b","tail":"c"}'] * 17)
    return [
        ("GET", "/api/nothing", None, 404), ("GET", "/index.html", None, 404), ("GET", "//", None, 404),
        ("GET", "/../../etc/passwd", None, 404), ("GET", "/%2e%2e/%2e%2e/etc/passwd", None, 404),
        ("GET", "/..%2f..%2fetc%2fpasswd", None, 404), ("GET", "/page/../app.js", None, 404),
        ("GET", "/etc/passwd", None, 404), ("GET", "//etc/passwd", None, 404), ("GET", "/app.js%00.css", None, 400),
        ("GET", "/%ff", None, 400), ("GET", "/%", None, 400), ("GET", "/api/entities?q=%zz", None, 400),
        ("DELETE", "/api/run", None, 405), ("POST", "/api/run", "{}", 405), ("GET", "/api/what-if", None, 405),
        ("PUT", "/", "x", 405), ("OPTIONS", "/api/predict", None, 405), ("TRACE", "/", None, 405),
        ("GET", "/api/entities?limit=0", None, 400), ("GET", "/api/entities?limit=101", None, 400),
        ("GET", "/api/entities?limit=x", None, 400), ("GET", "/api/entities?oops=1", None, 400),
        ("GET", "/api/entities?q=a&q=b", None, 400), ("GET", "/api/entity", None, 400),
        ("GET", "/api/entity?name=nobody", None, 404), ("GET", f"/api/entity?name={head}&relation=nothing", None, 404),
        ("GET", f"/api/entity?name={head}&direction=up", None, 400), ("GET", "/api/evaluation?split=train", None, 400),
        ("GET", "/api/predict", None, 400), ("GET", f"/api/predict?{ok}&tail={tail}", None, 400),
        ("GET", f"/api/predict?head={head}", None, 400), ("GET", f"/api/predict?{ok}&k=1001", None, 400),
        ("GET", f"/api/predict?{ok}&k=0", None, 400), ("GET", f"/api/predict?{ok}&known=maybe", None, 400),
        ("GET", f"/api/predict?{ok}&seen=perhaps", None, 400), ("GET", f"/api/predict?{ok}&where=x", None, 400),
        ("GET", f"/api/predict?{ok}&where=x=y", None, 404), ("GET", "/api/predict?head=nobody&relation=" + relation, None, 404),
        ("GET", f"/api/predict?head={head}&relation=nothing", None, 404),
        ("GET", f"/api/explain?{ok}", None, 400), ("GET", f"/api/explain?{ok}&answer=nobody", None, 404),
        ("GET", f"/api/explain?{ok}&answer={tail}&paths=9", None, 400), ("GET", "/api/map?limit=20001", None, 400),
        ("GET", "/api/map?name=nobody", None, 404), ("GET", "/api/entities?q=" + 9000 * "a", None, 414),
        ("POST", "/api/predict", "", 400), ("POST", "/api/predict", "[]", 400), ("POST", "/api/predict", "{", 400),
        ("POST", "/api/predict", "nul", 400), ("POST", "/api/predict", '{"head":1,"relation":"x"}', 400),
        ("POST", "/api/predict", '{"head":"a","head":"b"}', 400), ("POST", "/api/predict", '{"head":"\\u0000"}', 400),
        ("POST", "/api/predict", b'{"head":"\xff"}', 400), ("POST", "/api/predict", 5000 * "[", 400),
        ("POST", "/api/predict", '{"surprise":1}', 400),
        ("POST", "/api/predict", json.dumps({"head": head, "relation": relation, "candidates": []}), 400),
        ("POST", "/api/predict", json.dumps({"head": head, "relation": relation, "candidates": [1]}), 400),
        ("POST", "/api/predict", json.dumps({"head": head, "relation": relation, "candidates": ["nobody"]}), 404),
        ("POST", "/api/predict", json.dumps({"head": head, "relation": relation, "where": {}}), 400),
        ("POST", "/api/predict", json.dumps({"head": head, "relation": relation, "where": [{"relation": "x"}]}), 400),
        ("POST", "/api/what-if", json.dumps({"head": head, "relation": relation, "answer": tail}), 400),
        ("POST", "/api/what-if", f'{{"head":"{head}","relation":"{relation}","answer":"{tail}","without":[{many}]}}', 400),
        ("POST", "/api/what-if", json.dumps({"head": head, "relation": relation, "answer": tail, "without": [
            {"head": head, "relation": relation, "tail": head}]}), 400),
        ("POST", "/api/predict", 1000001 * " ", 413),
    ]
