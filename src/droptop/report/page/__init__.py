"""The report: a run, a comparison or a study as one HTML page that needs nothing else.

    arms.py       what a run folder holds so far, finished or not
    runs.py       the page of a run or comparison: first answer.py, then sections.py, with one chart or more each
    study.py      the page of a study
    tuning.py     the page of a tuning
    content.py    what a page is made of
    charts.py     from numbers to Vega-Lite, by altair
    attention.py  the maps that runs record, made small enough for a page
    render.py     from a page to HTML, by jinja2
    serve.py      the page while a run goes on
    private_server.py  a web server for one person on this machine
    assets/       template, style, script

A page is described as data first (content.py) and drawn last (render.py), so that tests can read what it says.
"""
