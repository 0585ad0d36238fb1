package bigtable

import (
	"strings"
	"testing"
)

// TestPositionIsKeptBesideTheState, for each table, the last one of several, and the state can be changed after it.
func TestPositionIsKeptBesideTheState(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		if got, err := c.LoadPosition(t.Context(), "shop", "Products"); got != nil || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		s := firstState()
		if err := c.CreateState(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"first", strings.Repeat("second", 1000)} {
			if err := c.StorePosition(t.Context(), "shop", "Products", []byte(text)); err != nil {
				t.Fatal(err)
			}
			if got, err := c.LoadPosition(t.Context(), "shop", "Products"); string(got) != text || err != nil {
				t.Errorf("%.20q, %v", got, err)
			}
		}
		next := *s
		if err := c.CompareAndSet(t.Context(), s, &next); err != nil {
			t.Error(err)
		}
		if got, err := c.LoadPosition(t.Context(), "shop", "Orders"); got != nil || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}
