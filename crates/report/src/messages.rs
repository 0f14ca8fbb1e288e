//! What reports, and the pages of `serve`, say in more than one language: one table, with each message in English and in Japanese.
//!
//! Placeholders are in braces, and the same in both. Words that a command line takes (`layout blob`, `--duration`) are the
//! same in all languages.

/// A language of reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    Japanese,
}

impl Language {
    /// The names of all languages, as `--lang` and HTML take them.
    pub const NAMES: [&str; 2] = ["en", "ja"];

    /// The language with this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "en" => Some(Self::English),
            "ja" => Some(Self::Japanese),
            _ => None,
        }
    }

    /// The language of a locale such as `ja_JP.UTF-8`; English for all others.
    pub fn of_locale(locale: &str) -> Self {
        let is_japanese = locale.split(['_', '.', '@']).next() == Some("ja");
        if is_japanese { Self::Japanese } else { Self::English }
    }

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// Declares the messages.
macro_rules! messages {
    ($($name:ident: $english:literal, $japanese:literal;)*) => {
        /// A message of a report, or of a page of `serve`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Message { $($name,)* }

        impl Message {
            /// Its texts, in the order of [`Language::NAMES`].
            const fn texts(self) -> [&'static str; 2] {
                match self { $(Self::$name => [$english, $japanese],)* }
            }

            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

impl Message {
    /// The message without placeholders.
    pub const fn text(self, language: Language) -> &'static str {
        self.texts()[language as usize]
    }

    /// The message with its placeholders filled in.
    pub fn with(self, language: Language, values: &[(&str, &str)]) -> String {
        filled(self.text(language), |name| {
            values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
        })
    }
}

/// The text with the values of its placeholders. A value is not searched for placeholders.
pub(crate) fn filled<'v>(text: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        out += before;
        out += value(name).unwrap_or_default();
        rest = after;
    }
    out + rest
}

messages! {
    HighestRate: "the highest rate", "最高の速さ";
    // The ranking.
    At: " at {values}", "({values})";
    On: " on {target}", "、{target}";
    Durability: " (durability: {classes})", "(耐久性: {classes})";
    Others: "others", "ほか";
    Comma: ", ", "、";
    AaControl: "A/A control", "A/A 対照";
    MoreMetrics: ", more metrics", "(その他の指標)";
    MoreMeans: ", more metrics: means per request", "(その他の指標: 要求ごとの平均)";
    OpsPerSecond: "ops/s", "回/秒";
    AgainstFirst: "against first", "1 位に対する倍率";
    AgainstFirstValue: "against first value", "最初の値に対する倍率";
    LimitedBy: "limited by", "限界";
    Retries: "retries/op", "再試行/回";
    Equal: "equal", "同等";
    EqualWithin: "equal (±{margin})", "同等(±{margin})";
    Undecided: "undecided", "未決";
    Failed: "failed", "失敗";
    NotAvailable: "not available", "利用不可";
    NotMeasured: "not measured", "未測定";
    NoRatio: "no ratio", "倍率なし";
    ClientFull: "not compared: client CPU full", "比較なし: クライアントの CPU が飽和";
    Overloaded: "overloaded", "過負荷";
    Invalid: "invalid", "無効";
    LagP99: "lag p99", "遅れ p99";
    Backlog: "backlog", "未処理";
    Dropped: "dropped", "取りやめ";
    ClientsLate: "not compared: clients too late", "比較なし: クライアントの遅れ";
    OtherLoad: "not compared: other load", "比較なし: ほかの負荷";
    // Bottlenecks.
    ClientCpu: "client CPU", "クライアントの CPU";
    ServerCpu: "server CPU", "サーバーの CPU";
    ProcessCpu: "CPU", "CPU";
    Disk: "disk", "ディスク";
    Network: "network", "ネットワーク";
    Locks: "locks", "ロック";
    Latency: "latency", "往復時間";
    Unknown: "unknown", "不明";
    None: "–", "–";
    // The terminal.
    AllFigures: "{more}all figures: {command}", "{more}全数値: {command}";
    OneMore: "1 more finding, ", "ほかに 1 件、";
    MoreFindings: "{count} more findings, ", "ほかに {count} 件、";
    NotInWidth: "Not shown in {width} columns: {what}.", "{width} 桁に入らない列: {what}。";
    NotShown: "Measured, and not shown here: {what}.", "測定済みで、ここに示さないもの: {what}。";
    LimitKept: "Pass: p99 of at most {limit} in all {count} results.", "合格: {count} 件すべてで p99 が {limit} 以下です。";
    LimitMissed: "Fail: p99 of at most {limit} in {passed} of {count} results, not {first}.", "不合格: p99 が {limit} 以下なのは {count} 件中 {passed} 件です。超えたもの: {first}。";
    OneRound: "{count} round", "{count} ラウンド";
    Rounds: "{count} rounds", "{count} ラウンド";
    RoundsOf: "{all} (rates and ratios: {interleaved} interleaved; limits: {continuous} continuous)", "{all}(数値と倍率: 交互 {interleaved} 回、限界: 連続 {continuous} 回)";
    // Two runs.
    FirstRun: "the first run", "最初の実行";
    SecondRun: "the second run", "2 番目の実行";
    TheRun: "the run", "この実行";
    Metric: "metric", "指標";
    Operation: "operation", "操作";
    Target: "target", "対象";
    Change: "change", "変化";
    Faster: "faster: {how}", "高速化: {how}";
    SlowerBy: "slower: {how}", "低速化: {how}";
    Better: "better: {how}", "改善: {how}";
    Worse: "worse: {how}", "悪化: {how}";
    NotCompared: "not compared", "比較なし";
    UndecidedAt: "undecided: {ratio}", "未決: {ratio}";
    Result: "result", "結果";
    What: "what", "項目";
    First: "first", "1 番目";
    Second: "second", "2 番目";
    SecondToFirst: "second ÷ first", "2 番目 ÷ 1 番目";
    SecondIs: "second is", "2 番目は";
    IsWorse: " worse", " 悪化";
    IsBetter: " better", " 改善";
    Gate: "gate", "判定";
    Passed: "passed", "合格";
    Slower: "slower", "低速";
    NotJudged: "not judged", "判定なし";
    MoreRows: "{count} more; all figures with --verbose, and in --export-markdown.", "ほかに {count} 件。全数値は --verbose と --export-markdown にあります。";
    Against: "{name} {a} against {b}", "{name} {a} と {b}";
    SettingsDiffer: "Settings that differ: {all}.", "設定の違い: {all}。";
    // Claims.
    Claims: "Claims", "主張";
    Claim: "claim", "主張";
    ClaimName: "id", "名前";
    Answer: "answer", "答え";
    Claimed: "claimed", "主張の範囲";
    Holds: "holds", "成立";
    DoesNotHold: "does not hold", "不成立";
    NotTestable: "not testable here", "ここでは検証不可";
    Then: "Then: ", "当時: ";
    ClaimsStopped: "Stopped: the other claims were not answered.", "中断しました。残りの主張には答えていません。";
    IntervalAndRange: "the interval and the claimed range", "区間と主張の範囲";
    HowClaims: "A claim holds if the whole interval of each of its tests lies within the claimed range (the band); it does not hold if an interval lies outside. Otherwise it is undecided. The answer is valid for these servers on this machine.",
        "すべての検証で区間全体が主張の範囲(帯)に収まれば、主張は成立です。区間が範囲の外にあれば不成立、それ以外は未決です。答えは、このマシンのこれらのサーバーについてのものです。";
    // The page.
    Run: "Run {run} · {date} · {rounds} · Kurabe {version}", "実行 {run} · {date} · {rounds} · Kurabe {version}";
    LogScale: "{what}, log scale", "{what}(対数目盛)";
    FirstToSecond: "first against second", "1 番目 ÷ 2 番目";
    AToB: "{a} against {b}", "{a} と {b}";
    RatioInterval: "ratio (interval)", "倍率(区間)";
    MoreCombinations: "{count} more combinations", "ほかの {count} 通り";
    MorePlaces: "{count} more places", "ほかの {count} か所";
    PlotLegend: "Dot: the ratio to the first row of its group, of trials measured together; left of 1 is slower. Bar: its interval; all intervals hold together with 95 %. An arrow: the interval goes on. Pale: undecided. Band: the margin of ±{margin}, within which a difference does not matter. The axis is logarithmic.",
        "点は、同時に測った試行による、組の 1 行目に対する倍率です。1 より左は遅いことを表します。棒はその区間で、すべての区間が同時に 95 % で成り立ちます。矢印は区間がさらに続くこと、薄い色は未決を表します。帯は ±{margin} で、この中の差は問題になりません。軸は対数目盛です。";
    Pass: "Pass", "合格";
    Fail: "Fail", "不合格";
    ThresholdCount: ": p99 of at most {limit} in {passed} of {count} results", ": p99 が {limit} 以下なのは {count} 件中 {passed} 件";
    OneCaveat: "1 caveat", "注意 1 件";
    Caveats: "{count} caveats, the most serious first", "注意 {count} 件(重いものから)";
    InWords: "In words ({count})", "文章で({count} 件)";
    OverTime: "Rate over the time of a trial", "試行中の速さの推移";
    OverTimeLegend: "Operations per second, the mean of the continuous trials, which have the machine to themselves. Grey: the server's work in the background.", "毎秒の操作数。連続した試行の平均です。灰色はサーバーの裏側の処理です。";
    Charts: "Charts", "グラフ";
    ChartsBy: "Charts by {axis}", "グラフ(横軸 {axis})";
    ChartLegend: "Axes are logarithmic. Bars: of a rate, the mean's interval; of a time, from the median to the 99th percentile. An arrow at a point: a lower bound.",
        "軸は対数目盛です。棒は、速さでは平均の区間、時間では中央値から 99 パーセンタイルまでを表します。点の矢印は下限です。";
    Knee: "knee", "屈曲点";
    Overload: "overload", "過負荷";
    Rate: "Rate", "速さ";
    TimePerOperation: "Time per operation", "1 回の時間";
    RateUnit: "operations per second, log scale", "毎秒の操作数(対数目盛)";
    TimeUnit: "time per operation, log scale: median, and p99 dotted", "1 回の時間(対数目盛): 中央値、点線は p99";
    FurtherMetrics: "Further metrics", "その他の指標";
    InDetail: "In detail", "詳細";
    Results: "Results", "結果";
    ResultsLegend: "Operations per second: the mean of the rounds with its 95 % interval. Latencies: over all of them. CPU: of the client.",
        "毎秒の操作数は、ラウンドの平均と 95 % 区間です。時間はその全体、CPU はクライアントのものです。";
    Constant: " Constant: {values}.", " 固定: {values}。";
    FromServer: "Reported by the server", "サーバー自身の統計";
    ReportedOn: "Reported by the server on {operations}", "サーバー自身の統計: {operations}";
    PlansOf: "Plans of {operations}", "実行計画: {operations}";
    Query: "query", "問い合わせ";
    Plan: "plan", "実行計画";
    CounterLegend: "The server's own counters, mostly of the whole server, including other users and background tasks. log: recovery log; binlog: replication log; files: all bytes written, for an embedded database.",
        "サーバー自身の計数で、多くはほかの利用者や裏側の処理も含むサーバー全体のものです。log はリカバリーログ、binlog はレプリケーションログ、files は書き込まれた全バイト数(組み込みデータベース)です。";
    Verdict: "Verdict", "判定";
    Warnings: "Warnings", "注意";
    NotReported: "Not reported", "報告なし";
    Bottlenecks: "Bottlenecks", "ボトルネック";
    NoResults: "No results", "結果なし";
    Basis: "Basis", "根拠";
    HowToRead: "How to read a verdict", "判定の読み方";
    HowIntervals: "Each round measures everything once, in random order. A ratio is the quotient of two means over the same rounds. A target or a value is called faster if the ratio's interval excludes 1. The interval is corrected for few rounds and for all comparisons. It holds for what was sampled: these servers as they ran, or any start of them.",
        "1 ラウンドごとに、すべてを 1 回ずつ無作為な順に測ります。倍率は、同じラウンドの平均どうしの商です。区間が 1 を含まなければ「速い」と判定します。区間は、少ないラウンド数とすべての比較について補正しています。成り立つ範囲は、測ったもの、つまりそのとき動いていたサーバー、または任意の起動です。";
    HowUndecided: "“Undecided” means that the interval includes 1 and reaches beyond the margin: either side may be better, by as much as the interval says. “Differ by less than” means that the whole interval lies within the margin. A ratio is valid for the tested values on this machine. A verdict on writes mentions different durability.",
        "「未決」は、区間が 1 を含み、許容差を超えていることを表します。どちらが良い可能性もあり、その大きさは区間のとおりです。「差は…未満」は、区間全体が許容差に収まることを表します。倍率は、このマシンで測った値についてのものです。書き込みの判定では、耐久性の違いも述べます。";
    FindingCount: "{count} findings", "{count} 件";
    Targets: "Targets", "対象";
    DurabilityOf: "Durability", "耐久性";
    Because: "because", "理由となる設定";
    Settings: "Settings", "設定";
    Client: "Client", "クライアント";
    ReachedBy: "Reached by", "接続";
    Processor: "Processor", "プロセッサー";
    ForTheTool: "{cpu}, {cpus} for the tool", "{cpu}、このツールに {cpus}";
    MemoryOf: "Memory", "メモリー";
    System: "System", "システム";
    Seed: "Seed", "乱数の種";
    ChartCount: "{count} charts", "グラフ {count} 件";
    By: "{what} by {axis}", "{what}(横軸 {axis})";
    Setup: "Setup", "条件";
    Footer: "Generated by Kurabe {version} from its record of the run. The page needs no network.", "Kurabe {version} が実行の記録から作成しました。このページはネットワークを使いません。";
    // The pages of `serve`.
    Pages: "Pages", "ページ";
    RunList: "Runs", "実行の一覧";
    History: "History", "履歴";
    NewRun: "New run", "新しい実行";
    RunningHere: "Started here and running", "ここで開始し、実行中";
    Search: "Search", "検索";
    SearchFor: "name, experiment, target, label, commit …", "名前、実験、対象、ラベル、コミット …";
    NoRuns: "No such runs in {code}. ", "{code} に該当する実行はありません。";
    StartOne: "Start one.", "実行を始める。";
    Compare: "compare", "比較";
    RunName: "run", "実行";
    Experiment: "experiment", "実験";
    TargetList: "targets", "対象";
    VerdictOf: "verdict", "判定";
    State: "state", "状態";
    From: "from", "由来";
    Note: "Note", "メモ";
    CompareChosen: "Compare the chosen runs", "選んだ実行を比較";
    OldestFirst: "the oldest is compared with each of the others", "最も古いものを、ほかのそれぞれと比較します";
    OlderRuns: "{count} older runs are not shown; a search finds them.", "古い実行 {count} 件は表示していません。検索で見つかります。";
    Complete: "complete", "完了";
    Stopped: "stopped", "停止";
    Running: "running", "実行中";
    Ended: "ended", "終了";
    After: "{state} after {time}", "{time} で{state}";
    Resumable: "{state}; '{command}' continues", "{state}('{command}' で再開)";
    Damaged: "damaged: {error}", "破損: {error}";
    Unreadable: "unreadable: {error}", "読み取り不可: {error}";
    RunOn: "{experiment} on {targets}", "{experiment}({targets})";
    StopRun: "Stop: results are kept", "停止(結果は残ります)";
    StopElsewhere: "It was started elsewhere: stop it there with Ctrl-C.", "別の場所で開始されています。そこで Ctrl-C で停止してください。";
    ResumeRun: "Resume at the next trial", "次の試行から再開";
    ReportPage: "The report as a page of its own", "報告を独立したページで開く";
    Report: "Report", "報告";
    SaveNote: "Save the note", "メモを保存";
    NothingYet: "Nothing has been measured yet.", "まだ何も測定していません。";
    ReportSoFar: "The report of the trials so far", "これまでの試行の報告";
    Command: "Command", "コマンド";
    RunFromHere: "A run from this page", "このページからの実行";
    Output: "Output", "出力";
    Reload: "Reload the page to see new trials.", "新しい試行を見るには、ページを再読み込みしてください。";
    Trials: "Trials", "試行";
    TrialsNewest: "Trials, the newest first", "試行(新しい順)";
    TrialCount: "trials", "試行";
    Round: "round", "ラウンド";
    Place: "at", "条件";
    CpusUsed: "CPUs used: client, servers", "使用中の CPU: クライアント、サーバー";
    ClientCpus: "client CPUs", "クライアントの CPU";
    ServerCpus: "server CPUs", "サーバーの CPU";
    DiskBusy: "disk busy", "ディスク使用率";
    SessionsAtWork: "sessions at work", "動作中のセッション";
    Sessions: "sessions", "セッション";
    TimeLeft: "left", "残り";
    LiveRates: "Operations per second, log scale", "毎秒の操作数(対数目盛)";
    LiveTimes: "Times of each trial, log scale", "各試行の時間(対数目盛)";
    LiveCpus: "Processors in use", "使用中のプロセッサー";
    LiveDisk: "Busiest disk, share of the time in use", "最も忙しいディスクの使用時間の割合";
    LiveNetwork: "Busiest network interface", "最も忙しいネットワークインターフェイス";
    LiveWaits: "Sessions at work on the server, by what they wait for", "サーバーで動作中のセッション(待ちの種類別)";
    LiveLegend: "The last five minutes. Resources are those of this machine; interleaved trials have no sessions of their own.",
        "直近の 5 分間です。資源はこのマシンのものです。交互の試行は、それぞれのセッションを持ちません。";
    FormFiles: "Suites, custom workloads and scripts of pgbench are files: start them with {code}.", "スイート、独自のワークロード、pgbench のスクリプトはファイルです。{code} で開始します。";
    NewRunOf: "New run of {experiment}", "{experiment} の新しい実行";
    TargetsHelp: "Separated by spaces: the targets with which the page was started, {code} for a throwaway server, or sqlite:FILE in the folder of runs. A password in a URL is not recorded.",
        "空白で区切ります。このページの開始時に指定した対象、使い捨てサーバーの {code}、実行のフォルダーにある sqlite:FILE を書けます。URL のパスワードは記録しません。";
    DefaultIs: "{help}. Default: {value}", "{help}。既定値: {value}";
    EqualsCommand: "It equals the command", "同じ意味のコマンド";
    Start: "Start", "開始";
    ShowCommand: "Show the command only", "コマンドだけを表示";
    Unchanged: "unchanged", "変更なし";
    BudgetDefault: "20s per target", "対象ごとに 20s";
    BudgetHelp: "Approximate duration of the whole run", "実行全体のおよその時間";
    RoundsDefault: "6, or up to 16", "6、最大 16";
    RoundsHelp: "How often everything is measured", "すべてを測る回数";
    DurationDefault: "as the budget allows", "全体の時間から決定";
    DurationHelp: "Duration of each trial's measured phase", "各試行で測定する時間";
    LabelDefault: "none", "なし";
    LabelHelp: "A label of the run, such as main, by which gates find it", "main などの、実行のラベル。判定(gate)はこれで実行を探します";
    DurabilityHelp: "Durability class of writes on every target", "すべての対象での、書き込みの耐久性";
    NoHistory: "No suite has a complete run yet. Make one with {code}.", "完了した実行のあるスイートはまだありません。{code} で作成します。";
    RunsOfSuite: ", {count} complete runs, the newest {date}", "、完了した実行 {count} 件、最新 {date}";
    SuiteOverTime: "{suite} over time", "{suite} の推移";
    ChangesOfSuite: "{count} complete runs, {changes} changes in {changed} of {all} results", "完了した実行 {count} 件、{all} 件の結果のうち {changed} 件に {changes} 回の変化";
    ChangeRule: "A result changed at a run if it is outside of what the runs since the last change differ by, and the next run agrees. At least 7 runs are needed before that, or runs that restart their servers. A change of the machine looks the same.",
        "前の変化以降の実行どうしの差を超え、次の実行でも同じなら、その実行で結果が変化したとします。それまでに 7 回以上の実行、またはサーバーを再起動する実行が必要です。マシンの変化も同じように見えます。";
    Steady: "{count} results without a change", "変化のない結果 {count} 件";
    SeriesOf: "{metric} of {operation} on {target}{values}", "{metric}: {operation}、{target}{values}";
    RunsInOrder: "runs in order, with their times", "実行(古い順、日時)";
    Values: "Values", "値";
    Value: "value", "値";
    FilterBy: "Filter by value", "値で絞り込む";
    SamplesDuring: "Session samples during {operations}", "セッションの標本: {operations}";
    SamplesLegend: "The clients' sessions as reported by the server, sampled about ten times a second, and the CPU time of server and client.", "サーバーが報告したクライアントのセッションを毎秒約 10 回調べたものと、サーバーとクライアントの CPU 時間です。";
    StatementsOf: "Statements of {operations}", "文: {operations}";
    StatementsLegend: "The server's statistics of the statements in this database with the most time.", "このデータベースで最も時間を使った文についての、サーバー自身の統計です。";
    OneResult: "One result", "1 つの結果";
    Share: "share", "割合";
    WaitState: "wait state", "待ちの種類";
    WaitingFor: "waiting for", "待つもの";
    Statement: "statement", "文";
    Calls: "calls", "呼び出し";
    Commit: "commit", "コミット";
    Interval: "interval", "区間";
    ChangedBetter: "{run}: better, {low} to {high}", "{run}: 改善、{low} から {high}";
    ChangedWorse: "{run}: worse, {low} to {high}", "{run}: 悪化、{low} から {high}";
    Unconfirmed: "; no later run confirms it yet", "(後の実行ではまだ確認されていません)";
    Comparison: "Comparison", "比較";
    DidNotWork: "That did not work", "エラー";
    AllRuns: "All runs", "すべての実行";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The placeholders of a text, sorted.
    fn placeholders(text: &str) -> Vec<&str> {
        let mut found: Vec<&str> =
            text.split('{').skip(1).map(|rest| rest.split_once('}').unwrap().0).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn each_message_has_both_languages_with_the_same_placeholders() {
        let is_japanese = |text: &str| text.chars().any(|c| c >= '\u{3000}');
        let same = [Message::ProcessCpu];
        for message in Message::ALL {
            let [english, japanese] = message.texts();
            assert!(!english.is_empty() && !japanese.is_empty(), "{message:?}");
            assert_eq!(placeholders(english), placeholders(japanese), "{message:?}");
            assert!(!is_japanese(english), "{message:?}: {english}");
            let words =
                japanese.split(['{', '}']).step_by(2).any(|part| part.chars().any(char::is_alphabetic));
            let fits = is_japanese(japanese) || !words || same.contains(message);
            assert!(fits, "{message:?}: {japanese}");
        }
    }

    #[test]
    fn placeholders_are_filled_in_and_values_are_not_searched() {
        let text = Message::AllFigures.with(Language::Japanese, &[("more", "{command}"), ("command", "x")]);
        assert_eq!(text, "{command}全数値: x");
    }

    #[test]
    fn language_follows_the_locale() {
        for (locale, name) in [("ja_JP.UTF-8", "ja"), ("ja", "ja"), ("C", "en"), ("", "en"), ("java", "en")] {
            assert_eq!(Language::of_locale(locale).name(), name, "{locale}");
        }
    }
}
