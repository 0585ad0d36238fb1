package bigtable

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/proto"

	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// TestPositionIsKeptBesideTheState, for each table, the last one of several, and the state can be
// changed after it.
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

// TestPositionThatIsOfNoUse: that of a later build is not guessed at (Rule 11), a broken one is an
// error, and one that no row may hold is not stored.
func TestPositionThatIsOfNoUse(t *testing.T) {
	c, _ := rig(t)
	store := func(value string) {
		t.Helper()
		write := []op{{kind: opSet, family: tableschema.StateFamily, qualifier: []byte(positionQualifier),
			value: []byte(value)}}
		r := &request{key: stateKey("shop", "Products"), skip: write, body: write}
		var err error
		if r.filter, err = proto.Marshal(columnFilter(positionQualifier)); err == nil {
			err = c.table(tableschema.StateTable).deliver(t.Context(), r, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	store("\x02" + string(s2.Encode(nil, []byte("of a later build"))))
	if got, err := c.LoadPosition(t.Context(), "shop", "Products"); got != nil || err != nil {
		t.Errorf("of a later build: %q, %v", got, err)
	}
	store("\x01\xff")
	if got, err := c.LoadPosition(t.Context(), "shop", "Products"); got != nil || err == nil {
		t.Errorf("broken: %q, %v", got, err)
	}
	large := make([]byte, maxPosition)
	_, _ = rand.NewChaCha8([32]byte{}).Read(large) // never fails
	err := c.StorePosition(t.Context(), "shop", "Orders", large)
	if err == nil || !strings.Contains(err.Error(), "allowed") {
		t.Errorf("too large: %v", err)
	}
}
