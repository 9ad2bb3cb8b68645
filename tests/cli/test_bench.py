import json


def test_bench_times_methods_and_refuses_what_it_cannot_time(tmp_path, here):
    done = here("bench", "--methods", "er,finetune", "--steps", "3", "--width", "4", "--out", tmp_path / "b.json")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "b.json").read_text())["rows"]
    assert [(row["method"], row["debias"], row["engine"]) for row in rows] == [
        ("er", "none", "plain loop"),
        ("er", "none", "eager"),
        ("er", "droptop", "eager"),
        ("finetune", "none", "eager"),
        ("finetune", "droptop", "eager"),
    ]
    assert rows[2]["shares"].keys() == {"rest", "memory", "images", "forward", "mask", "attention", "backward", "probe"}
    assert all(99 < sum(row["shares"].values()) < 101 for row in rows[1:])
    for args in (
        ["--methods", "sgd"],
        ["--steps", "1"],
        ["--out", "nowhere/b.json"],
        ["--debias", "none"],
        ["--seeds", "1,5"],
        ["--engines", "graphs"],
        ["--data", "nothing"],
    ):
        wrong = here("bench", *args)
        assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)
