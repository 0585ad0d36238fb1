package expired

import "testing"

// TestHeadMovesWithWhatItSays: entries of the archive's stream alone are no reason to store it, or marks would be
// stored for ever; fewer of them are.
func TestHeadMovesWithWhatItSays(t *testing.T) {
	known := Head{N: 3, Hash: "c", End: 100, Open: 7}
	for name, x := range map[string]struct {
		head Head
		from *Head
		want bool
	}{
		"nothing is known":  {known, nil, true},
		"the same":          {known, &known, false},
		"more entries":      {Head{N: 3, Hash: "c", End: 101, Open: 7}, &known, false},
		"fewer entries":     {Head{N: 3, Hash: "c", End: 99, Open: 7}, &known, true},
		"an hour is closed": {Head{N: 3, Hash: "c", End: 100, Open: 8}, &known, true},
		"a manifest":        {Head{N: 4, Hash: "d", End: 100, Open: 7}, &known, true},
	} {
		if got := x.head.Moved(x.from); got != x.want {
			t.Errorf("%s: moved is %v", name, got)
		}
	}
}
