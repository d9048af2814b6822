"""Reports to look at, and one browser for all tests that need one."""

import shutil

import numpy as np
import pytest
from helpers.reports import make_data

import marginrank
from marginrank import AdditiveRankSVM, RankingData, RankSVM


@pytest.fixture(scope="session")
def data():
    return make_data()


@pytest.fixture(scope="session")
def model(data):
    return RankSVM().fit(data)


@pytest.fixture(scope="session")
def linear_report(data, model):
    """Return the report of a linear model against its first feature, with judgments."""
    qrels = {}
    for query, comment in list(zip(data.query_ids[data.qid], data.comments, strict=True))[::2]:
        qrels.setdefault(str(query), {})[comment] = 1
    return marginrank.report(model, data, baseline=data.X[:, 0], qrels=qrels, train=data)


@pytest.fixture(scope="session")
def additive_report(data):
    X = data.X.astype(np.float64)
    X[::7, 1] = np.nan
    gaps = RankingData(X, data.y, qid=data.qid, allow_nan=True, feature_names=data.feature_names)
    model = AdditiveRankSVM(interactions=1).fit(gaps)
    return marginrank.report(model, gaps)


@pytest.fixture(scope="session")
def browser():
    """Return headless Chromium without a network."""
    webdriver = pytest.importorskip("selenium.webdriver")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("chromium or chromedriver is not installed (apt-get install chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1440,900"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.chrome.service.Service(driver)
    driver = webdriver.Chrome(options=options, service=service)
    driver.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    yield driver
    driver.quit()


@pytest.fixture
def show(browser, tmp_path):
    """Return a function that opens a report; afterwards the console must be silent."""

    def show(report, **media):
        path = tmp_path / "report.html"
        report.save(path)
        features = [{"name": name.replace("_", "-"), "value": v} for name, v in media.items()]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(path.as_uri())
        return browser

    yield show
    assert browser.get_log("browser") == []
    assert browser.execute_script("return window.harmed") is None
