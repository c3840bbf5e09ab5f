//! Play a game of Big Ben with a player of the library, and print it.
//!
//! rustc -O --edition 2021 play.rs -L FOLDER -C link-arg=-Wl,-rpath,FOLDER && ./play FOLDER 1 small
//!
//! FOLDER is what `python -m card_envs build big_ben --api` wrote; then a seed, and who plays.

use std::alloc::{alloc_zeroed, Layout};
use std::ffi::{c_char, c_void, CStr, CString};
use std::{env, fs, process};

type Advise = unsafe extern "C" fn(*const c_void, *mut c_void, *const u64, *mut i16, *mut f64) -> i32;

#[link(name = "card_envs_big_ben")]
extern "C" {
    fn card_envs_big_ben_error(code: i32) -> *const c_char;
    fn card_envs_big_ben_state_size() -> u64;
    fn card_envs_big_ben_player_memory(player: *const c_char) -> u64;
    fn card_envs_big_ben_init(state: *mut c_void);
    fn card_envs_big_ben_begin(state: *mut c_void, seed: *const u64) -> i32;
    fn card_envs_big_ben_over(state: *const c_void) -> i32;
    fn card_envs_big_ben_play(state: *mut c_void, action: i32) -> i32;
    fn card_envs_big_ben_rewards(state: *const c_void, rewards: *mut f32) -> i32;
    fn card_envs_big_ben_move_text(state: *const c_void, action: i32) -> *const c_char;
    fn card_envs_big_ben_load_player(
        player: *const c_char, file: *const c_void, length: u64, memory: *mut c_void, size: u64,
    ) -> i32;
    fn card_envs_big_ben_advise_greedy(s: *const c_void, m: *mut c_void, k: *const u64, a: *mut i16, v: *mut f64) -> i32;
    fn card_envs_big_ben_advise_small(s: *const c_void, m: *mut c_void, k: *const u64, a: *mut i16, v: *mut f64) -> i32;
    fn card_envs_big_ben_advise_strong(s: *const c_void, m: *mut c_void, k: *const u64, a: *mut i16, v: *mut f64) -> i32;
}

const ACTIONS: usize = 158; // as in the header

fn text(found: *const c_char) -> String {
    unsafe { CStr::from_ptr(found) }.to_string_lossy().into_owned()
}

fn checked(code: i32, what: &str) -> i32 {
    if code < 0 {
        eprintln!("{what}: {}", text(unsafe { card_envs_big_ben_error(code) }));
        process::exit(1);
    }
    code
}

fn main() {
    let given: Vec<String> = env::args().collect();
    let [_, folder, seed, player] = &given[..] else {
        eprintln!("expected: {} FOLDER SEED PLAYER", given[0]);
        process::exit(2);
    };
    let ask: Advise = match player.as_str() {
        "greedy" => card_envs_big_ben_advise_greedy,
        "small" => card_envs_big_ben_advise_small,
        "strong" => card_envs_big_ben_advise_strong,
        _ => panic!("{player}: no such player"),
    };
    let seed: u64 = seed.parse().expect("a seed");
    let file = fs::read(format!("{folder}/big_ben.{player}.player")).expect("the player's file");
    let name = CString::new(player.as_str()).unwrap();
    let mut values = vec![0f64; 3 * ACTIONS];
    let (mut actions, mut reward, mut keys) = ([0i16; 32], [0f32; 1], [seed, seed + 1]);
    unsafe {
        let room = |size: u64| alloc_zeroed(Layout::from_size_align(size as usize, 64).unwrap()).cast::<c_void>();
        let size = card_envs_big_ben_player_memory(name.as_ptr());
        let (table, memory) = (room(card_envs_big_ben_state_size()), room(size));
        let length = file.len() as u64;
        checked(card_envs_big_ben_load_player(name.as_ptr(), file.as_ptr().cast(), length, memory, size), player);
        card_envs_big_ben_init(table);
        checked(card_envs_big_ben_begin(table, &seed), "deal");
        while card_envs_big_ben_over(table) == 0 {
            checked(ask(table, memory, keys.as_ptr(), actions.as_mut_ptr(), values.as_mut_ptr()), player);
            println!("{}", text(card_envs_big_ben_move_text(table, actions[0].into())));
            checked(card_envs_big_ben_play(table, actions[0].into()), "play");
            keys = [keys[0] + 2, keys[1] + 2];
        }
        card_envs_big_ben_rewards(table, reward.as_mut_ptr());
    }
    println!("{}", if reward[0] > 0.0 { "won" } else { "lost" });
}
