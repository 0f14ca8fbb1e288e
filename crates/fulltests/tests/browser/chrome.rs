//! Headless Chromium, and pictures of what it shows.

use crate::support::eventually;
use headless_chrome::browser::default_executable;
use headless_chrome::protocol::cdp::Page::CaptureScreenshotFormatOption::Png;
use headless_chrome::protocol::cdp::types::Method;
use headless_chrome::types::PrintToPdfOptions;
use headless_chrome::{Browser, LaunchOptions, Tab};
use kurabe_testbed::testing;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a page may take to show something, on a busy machine.
const PATIENCE: u64 = 120;

/// A tab of a browser of its own.
pub(super) struct Chrome {
    tab: Arc<Tab>,
    _browser: Browser,
}

/// A command of the `DevTools` protocol (<https://chromedevtools.github.io/devtools-protocol/>).
macro_rules! command {
    ($name:ident, $method:literal) => {
        #[derive(Debug, Serialize)]
        struct $name(Value);

        impl Method for $name {
            const NAME: &'static str = $method;
            type ReturnObject = Value;
        }
    };
}
command!(SetDeviceMetrics, "Emulation.setDeviceMetricsOverride");
command!(SetMedia, "Emulation.setEmulatedMedia");
command!(SetScriptsDisabled, "Emulation.setScriptExecutionDisabled");

/// A rectangle of a page in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rectangle {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Chrome {
    /// Starts it; `None`, and a line on standard error, if Chromium is not installed.
    pub(super) fn open() -> Option<Self> {
        let program = match default_executable() {
            Ok(program) => program,
            Err(why) if testing::required() => panic!("Chromium is not installed: {why}"),
            Err(why) => {
                testing::skipped(&format!("Chromium is not installed: {why}"));
                return None;
            }
        };
        let options = LaunchOptions::default_builder()
            .path(Some(program))
            // As root, the sandbox cannot be used. Only our own pages are opened.
            .sandbox(false)
            .idle_browser_timeout(Duration::from_secs(600))
            .build()
            .unwrap();
        let browser = Browser::new(options).unwrap();
        let tab = browser.new_tab().unwrap();
        tab.set_default_timeout(Duration::from_secs(PATIENCE));
        let chrome = Self { tab, _browser: browser };
        chrome.viewport(1280, 900, false);
        chrome.media("screen", "light");
        Some(chrome)
    }

    pub(super) fn go(&self, url: &str) {
        self.tab.navigate_to(url).unwrap();
        self.tab.wait_until_navigated().unwrap();
    }

    pub(super) fn js(&self, expression: &str) -> Value {
        self.value(expression).unwrap_or_else(|why| panic!("{expression}: {why}"))
    }

    fn value(&self, expression: &str) -> Result<Value, String> {
        let text = format!("JSON.stringify(({expression}) ?? null)");
        let found = self.tab.evaluate(&text, false).map_err(|error| error.to_string())?;
        let value = found.value.ok_or_else(|| found.description.unwrap_or_default())?;
        serde_json::from_str(value.as_str().unwrap_or("null")).map_err(|error| error.to_string())
    }

    /// Waits until an expression is true. While a page is loaded, an expression may fail.
    pub(super) fn wait(&self, expression: &str) {
        let truth = format!("!!({expression})");
        let is_true = || self.value(&truth).ok().filter(|value| *value == json!(true));
        if eventually(PATIENCE, is_true).is_none() {
            let page = self.value("location.href + '\\n' + document.body.innerText.slice(0, 2000)");
            panic!("never true: {expression}\n{page:?}, {:?}", self.value(&truth));
        }
    }

    /// Clicks into the middle of the first element that a selector finds.
    pub(super) fn click(&self, selector: &str) {
        self.tab.wait_for_element(selector).and_then(|element| element.click().map(drop)).unwrap();
    }

    /// Clicks behind the text of a field and types more.
    pub(super) fn type_into(&self, selector: &str, text: &str) {
        self.tab.wait_for_element(selector).and_then(|element| element.type_into(text).map(drop)).unwrap();
    }

    pub(super) fn press(&self, key: &str) {
        self.tab.press_key(key).unwrap();
    }

    pub(super) fn viewport(&self, width: u32, height: u32, mobile: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.tab.call_method(SetDeviceMetrics(size)).unwrap();
    }

    /// The medium, `screen` or `print`, and the colours, `light` or `dark`.
    pub(super) fn media(&self, medium: &str, colours: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": colours }]);
        self.tab.call_method(SetMedia(json!({ "media": medium, "features": features }))).unwrap();
    }

    pub(super) fn scripts(&self, enabled: bool) {
        self.tab.call_method(SetScriptsDisabled(json!({ "value": !enabled }))).unwrap();
    }

    /// The first element that a selector finds, from the upper left corner of the page.
    pub(super) fn rectangle(&self, selector: &str) -> Rectangle {
        let of = format!(
            "(r => [r.left + scrollX, r.top + scrollY, r.width, r.height])(document.querySelector({}).getBoundingClientRect())",
            json!(selector)
        );
        let found = self.js(&of);
        let number = |at: usize| found[at].as_f64().unwrap();
        Rectangle { left: number(0), top: number(1), width: number(2), height: number(3) }
    }

    /// What is seen at the top of the page.
    pub(super) fn picture(&self) -> Picture {
        self.js("scrollTo(0, 0)");
        Picture::of(&self.tab.capture_screenshot(Png, None, None, true).unwrap())
    }

    /// The whole page, however long, in the width of a desktop.
    pub(super) fn whole_picture(&self) -> Picture {
        let height = self.js("document.documentElement.scrollHeight").as_u64().unwrap();
        self.viewport(1280, u32::try_from(height).unwrap().min(16_000), false);
        let picture = self.picture();
        self.viewport(1280, 900, false);
        picture
    }

    /// The number of pages of A4 that the page is printed on.
    pub(super) fn pages_on_paper(&self) -> usize {
        let size =
            PrintToPdfOptions { paper_width: Some(8.27), paper_height: Some(11.69), ..Default::default() };
        let pdf = self.tab.print_to_pdf(Some(size)).unwrap();
        let text = String::from_utf8_lossy(&pdf).into_owned();
        text.matches("/Type /Page\n").count()
    }

    /// In 375 pixels nothing is cut off at the right.
    pub(super) fn fits_a_phone(&self) {
        self.viewport(375, 800, true);
        let wide = "[...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > 376 && !one.closest('.box,pre,svg')).slice(0, 5).map(one => one.outerHTML.slice(0, 80))";
        let width = self.js("document.documentElement.scrollWidth");
        assert_eq!(width, json!(375), "wider than a phone: {}", self.js(wide));
        assert!(self.picture().ink(&self.rectangle("h1")) > 0.01, "no heading on a phone");
        self.viewport(1280, 900, false);
    }

    /// Dark mode is dark, and has something to see.
    pub(super) fn has_a_dark_mode(&self) {
        let light = self.picture();
        self.media("screen", "dark");
        let dark = self.picture();
        let (bright, dim) = (light.brightness(), dark.brightness());
        assert!(bright > 200.0 && dim < 80.0, "light {bright}, dark {dim}");
        assert!(dark.ink(&self.rectangle("h1")) > 0.01, "no heading in dark mode");
        self.media("screen", "light");
    }
}

/// A picture of a page.
pub(super) struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    pub(super) fn of(png: &[u8]) -> Self {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let samples = info.color_type.samples();
        let pixels = bytes[..info.buffer_size()].chunks(samples).map(|pixel| [pixel[0], pixel[1], pixel[2]]);
        Self { width: info.width as usize, height: info.height as usize, pixels: pixels.collect() }
    }

    /// The share of a rectangle's pixels that have another colour than most of them; 0 outside the picture.
    pub(super) fn ink(&self, part: &Rectangle) -> f64 {
        let range = |from: f64, length: f64, end: usize| {
            let at = |value: f64| (value.max(0.0) as usize).min(end);
            at(from)..at(from + length)
        };
        let (rows, columns) =
            (range(part.top, part.height, self.height), range(part.left, part.width, self.width));
        let mut colours: HashMap<[u8; 3], usize> = HashMap::new();
        for row in rows {
            for pixel in &self.pixels[row * self.width..][columns.clone()] {
                *colours.entry(*pixel).or_default() += 1;
            }
        }
        let (all, most) = (colours.values().sum::<usize>(), colours.values().max().copied().unwrap_or(0));
        if all == 0 { 0.0 } else { (all - most) as f64 / all as f64 }
    }

    /// The same of the whole picture.
    pub(super) fn whole_ink(&self) -> f64 {
        let (width, height) = (self.width as f64, self.height as f64);
        self.ink(&Rectangle { left: 0.0, top: 0.0, width, height })
    }

    /// The mean of all colours, 0 to 255.
    fn brightness(&self) -> f64 {
        let sum: u64 = self.pixels.iter().flatten().map(|part| u64::from(*part)).sum();
        sum as f64 / (self.pixels.len() * 3) as f64
    }
}
