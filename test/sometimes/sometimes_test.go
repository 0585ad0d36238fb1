package sometimes

import (
	"slices"
	"testing"
)

func TestBranchesThatAreNeverReachedAreNamed(t *testing.T) {
	c := New("a", "b", "c")
	c.Reached("b")
	c.Add("b", 2)
	c.Add("c", 0)
	if got := c.Never(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("never reached: %q", got)
	}
	if got, want := c.Table(), "         0  a\n         3  b\n         0  c\n"; got != want {
		t.Errorf("table:\n%s", got)
	}
	(*Counts)(nil).Reached("anything")
	defer func() {
		if recover() == nil {
			t.Error("a branch without a name is counted")
		}
	}()
	c.Reached("d")
}
