package bigtable

// chance returns true with probability p.
func (f *Front) chance(p float64) bool {
	if p <= 0 {
		return false
	}
	f.rndMu.Lock()
	defer f.rndMu.Unlock()
	return f.rnd.Float64() < p
}

// shuffle puts n elements into a random order.
func (f *Front) shuffle(n int, swap func(i, j int)) {
	f.rndMu.Lock()
	defer f.rndMu.Unlock()
	f.rnd.Shuffle(n, swap)
}

// randomBelow returns a random number in [0, n).
func (f *Front) randomBelow(n int) int {
	f.rndMu.Lock()
	defer f.rndMu.Unlock()
	return f.rnd.IntN(n)
}
