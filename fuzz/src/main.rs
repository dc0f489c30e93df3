//! Throws mutated input at the readers and text functions of canonym, on the stable compiler.
//!
//! `fuzz/README.md` tells how to run it. [`targets`] holds what is called and what it promises, [`mutate`] how
//! inputs are made, [`hunt`] the loop.

mod hunt;
mod knowledge;
mod mutate;
mod seeds;
mod targets;
mod written;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use hunt::Budget;
use targets::Target;

const USAGE: &str = "canonym-fuzz [--list] [--seconds N] [--seed N] [--target NAME] [FILE...]";

struct Arguments {
    list: bool,
    seconds: u64,
    seed: u64,
    target: Option<String>,
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match parse().and_then(run) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(n) => {
            eprintln!("{n} faults");
            ExitCode::from(1)
        }
        Err(message) => {
            eprintln!("error: {message}\nusage: {USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse() -> Result<Arguments, String> {
    let mut arguments = Arguments { list: false, seconds: 60, seed: 1, target: None, files: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
        match word.as_str() {
            "--list" => arguments.list = true,
            "--seconds" => arguments.seconds = number(value()?)?,
            "--seed" => arguments.seed = number(value()?)?,
            "--target" => arguments.target = Some(value()?),
            option if option.starts_with('-') => return Err(format!("there is no option {option}")),
            file => arguments.files.push(PathBuf::from(file)),
        }
    }
    Ok(arguments)
}

/// Runs what was asked for and tells how many faults were found.
fn run(arguments: Arguments) -> Result<usize, String> {
    let mut targets = targets::all();
    if let Some(name) = &arguments.target {
        targets.retain(|target| target.name == *name);
        if targets.is_empty() {
            return Err(format!("there is no target {name}; `--list` shows all"));
        }
    }
    if arguments.list {
        targets.iter().for_each(|target| println!("{}", target.name));
        return Ok(0);
    }
    hunt::quiet_panics();
    if !arguments.files.is_empty() {
        return replay(&targets, &arguments.files);
    }
    let mut n_faults = 0;
    for target in &targets {
        let budget = Budget::Time(Duration::from_secs(arguments.seconds));
        let result = hunt::hunt(target, arguments.seed, budget);
        println!(
            "{:20} {:>9} inputs, {:>5} kinds, {} faults",
            target.name,
            result.n_runs,
            result.n_kinds,
            result.faults.len()
        );
        for (place, fault) in result.faults.iter().enumerate() {
            let path =
                hunt::keep(target, place, &fault.input).map_err(|error| format!("cannot keep an input: {error}"))?;
            println!("  {} ({})", fault.message, path.display());
        }
        n_faults += result.faults.len();
    }
    Ok(n_faults)
}

fn replay(targets: &[Target], files: &[PathBuf]) -> Result<usize, String> {
    let mut n_faults = 0;
    for path in files {
        let input = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        for target in targets {
            match hunt::try_input(target, &input) {
                Ok(said) => println!("{} {}: {said}", target.name, path.display()),
                Err(message) => {
                    println!("{} {}: FAULT {message}", target.name, path.display());
                    n_faults += 1;
                }
            }
        }
    }
    Ok(n_faults)
}
