"""The report: a run, a comparison or a study as one HTML page that needs nothing else.

reading.py    what is in the folder, finished or not
runs.py       the page of a run or comparison: answer.py, then sections.py, a chart or more each
study.py      the page of a study
content.py    what a page is made of
charts.py     numbers -> Vega-Lite, by altair
looks.py      the maps that runs record, small enough for a page
render.py     all of it -> HTML, by jinja2
serve.py      the page while a run goes on
assets/       template, style, script
"""
