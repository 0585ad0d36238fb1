package tableschema

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSplitKeysArePassedSorted(t *testing.T) {
	splits := [][]byte{[]byte("m"), {0, 0xff}, []byte("a,b"), []byte("g")}
	want := Tables([]Table{{Name: "orders", Splits: splits}}, time.Hour)
	if diff := cmp.Diff([]string{"\x00\xff", "a,b", "g", "m"}, tableConf(want[0]).SplitKeys); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
