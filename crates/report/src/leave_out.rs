//! Removes targets from a run, as if they had not been measured.

use kurabe_core::run::{Run, TargetRecord};

/// Whether the user's word refers to this target: a name or URL refers to one target, an engine or scheme to all of
/// its targets.
pub(crate) fn means(word: &str, target: &TargetRecord, all: &[TargetRecord]) -> bool {
    let same = |text: &str| text.eq_ignore_ascii_case(word);
    let own = |target: &TargetRecord| same(&target.name) || target.url == word;
    if all.iter().any(own) {
        return own(target);
    }
    same(&target.facts.engine) || same(&target.scheme)
}

/// The run without the targets for which `keep` is false: their cells, trials and names are removed.
pub(crate) fn without(run: &Run, keep: &[bool]) -> Run {
    let kept = |target: usize| keep.get(target).copied().unwrap_or(true);
    let mut less = run.clone();
    let header = &mut less.header;
    header.command = command(run, keep);
    header.targets = chosen(&run.header.targets, keep);
    header.spec.targets = chosen(&run.header.spec.targets, keep);
    let gone = run.header.targets.iter().zip(keep).filter(|(_, kept)| !**kept);
    let gone: Vec<String> = gone.map(|(target, _)| format!("{}:", target.name)).collect();
    header.warnings.retain(|warning| !gone.iter().any(|name| warning.starts_with(name)));
    for resumption in &mut less.resumptions {
        resumption.targets = chosen(&resumption.targets, keep);
    }
    let moved = |old: usize| (0..old).filter(|position| kept(*position)).count();
    // The new position of each cell.
    let mut places = Vec::with_capacity(run.header.cells.len());
    header.cells.clear();
    for cell in &run.header.cells {
        places.push(kept(cell.target).then_some(header.cells.len()));
        if kept(cell.target) {
            let mut cell = cell.clone();
            cell.target = moved(cell.target);
            header.cells.push(cell);
        }
    }
    less.trials.retain_mut(|trial| match places.get(trial.cell) {
        Some(Some(place)) => {
            trial.cell = *place;
            true
        }
        _ => false,
    });
    less
}

fn chosen<T: Clone>(all: &[T], keep: &[bool]) -> Vec<T> {
    let kept = |at: usize| keep.get(at).copied().unwrap_or(true);
    all.iter().enumerate().filter(|(at, _)| kept(*at)).map(|(_, one)| one.clone()).collect()
}

/// The command line without the arguments of removed targets. If it still contains one of them, it is withheld.
fn command(run: &Run, keep: &[bool]) -> Vec<String> {
    let header = &run.header;
    let gone = |at: &usize| keep.get(*at) == Some(&false);
    let urls: Vec<&str> = (0..header.spec.targets.len())
        .filter(gone)
        .filter_map(|at| header.spec.targets.get(at).map(String::as_str))
        .collect();
    let mut words: Vec<String> = Vec::new();
    for word in &header.command {
        let bare = ["--target=", "-t"].iter().find_map(|option| word.strip_prefix(option)).unwrap_or(word);
        if !urls.contains(&word.as_str()) && !urls.contains(&bare) {
            words.push(word.clone());
        } else if words.last().is_some_and(|before| before == "-t" || before == "--target") {
            words.pop();
        }
    }
    let telling = header.targets.iter().enumerate().filter(|(at, _)| gone(at)).flat_map(|(_, target)| {
        let names = [target.scheme.as_str(), target.facts.engine.as_str(), target.name.as_str()];
        names.into_iter().filter(|name| !name.is_empty()).map(str::to_lowercase)
    });
    // The name of a remaining target may contain it, such as "mysql" of two.
    let telling: Vec<String> = telling.collect();
    let tells = |word: &String| telling.iter().any(|name| word.to_lowercase().contains(name.as_str()));
    let stays: Vec<&String> =
        header.spec.targets.iter().enumerate().filter(|(at, _)| !gone(at)).map(|(_, url)| url).collect();
    if words.iter().any(|word| tells(word) && !stays.contains(&word)) {
        return vec!["withheld".to_owned()];
    }
    words
}
