package sim

import "math/rand/v2"

// tape is the sequence of choices of one history. A choice is a number below a bound; 0 is the one
// at which nothing goes wrong. The choices are drawn at random, or replayed: then each is cut to
// its bound and 0 follows the last, so that any sequence of numbers is a history, also one out of
// which a shrinker has cut a piece.
type tape struct {
	rng    *rand.Rand // nil: replay
	script []int
	used   []int

	calm bool // nothing goes wrong any more, and nothing is recorded
}

func newTape(seed uint64) *tape { return &tape{rng: rand.New(rand.NewPCG(seed, 11))} }

func replayOf(script []int) *tape { return &tape{script: script} }

// ended reports whether a replay has used its script.
func (t *tape) ended() bool { return t.rng == nil && len(t.used) >= len(t.script) }

// choose returns a number below n.
func (t *tape) choose(n int) int { return t.draw(n, func(r *rand.Rand) int { return r.IntN(n) }) }

// one reports true once in n times.
func (t *tape) one(n int) bool {
	return t.draw(2, func(r *rand.Rand) int {
		if r.IntN(n) == 0 {
			return 1
		}
		return 0
	}) == 1
}

// weighted returns the index of a weight, in proportion to it.
func (t *tape) weighted(weights ...int) int {
	return t.draw(len(weights), func(r *rand.Rand) int {
		sum := 0
		for _, w := range weights {
			sum += w
		}
		x := r.IntN(sum)
		for i, w := range weights {
			if x < w {
				return i
			}
			x -= w
		}
		return 0
	})
}

// draw makes one choice below n; random draws it where it is not replayed.
func (t *tape) draw(n int, random func(*rand.Rand) int) int {
	if t.calm || n < 2 {
		return 0
	}
	v := 0
	switch at := len(t.used); {
	case at < len(t.script):
		v = min(max(t.script[at], 0), n-1)
	case t.rng != nil:
		v = random(t.rng)
	}
	t.used = append(t.used, v)
	return v
}

// explorer enumerates the histories of a small world: a depth-first search through all choices that
// leave out what follows a state that was seen before.
//
// A step is one action of one process; by default the first of its due actions. A preemption is any
// other step: a later action of the process, the action of another one, a freeze of it until
// another one owns the log, a thaw. What happens to the table, and what is under way, happens at
// any step.
type explorer struct {
	faults, preemptions int // that a history may have
	limit               int // entries of the log

	seen         map[uint64]bool
	script       []int
	used, bounds []int // of the history that runs
	runs, ends   int
}

// pick makes a choice of the search.
func (x *explorer) pick(n int) (v int) {
	if n < 2 {
		return 0
	}
	if i := len(x.used); i < len(x.script) {
		v = x.script[i]
	}
	x.used, x.bounds = append(x.used, v), append(x.bounds, n)
	return v
}
