package embedded

import (
	"testing"
)

func TestPauseBelow(t *testing.T) {
	const gib = 1 << 30
	for name, x := range map[string]struct{ total, untaken, want uint64 }{
		"logs that take little more":                 {1000 * gib, 1 * gib, 1 * gib},
		"logs that have taken all":                   {1000 * gib, 0, 1 * gib},
		"logs that may take a lot":                   {1000 * gib, 100 * gib, 20 * gib},
		"logs larger than the volume: a tenth of it": {100 * gib, 1000 * gib, 10 * gib},
		"a small volume: a tenth of it":              {5 * gib, 1 * gib, gib / 2},
	} {
		if got := pauseBelow(Volume{Total: x.total}, x.untaken); got != x.want {
			t.Errorf("%s: %d, want %d", name, got, x.want)
		}
	}
}
