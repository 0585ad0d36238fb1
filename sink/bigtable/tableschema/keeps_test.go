package tableschema

import (
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
)

// TestLifetimeOfTheNewestCell: a limit of versions never collects it, and a rule of several is as
// short as a union allows and as long as an intersection demands.
func TestLifetimeOfTheNewestCell(t *testing.T) {
	day := bigtable.MaxAgePolicy(24 * time.Hour)
	week, one := bigtable.MaxAgePolicy(7*24*time.Hour), bigtable.MaxVersionsPolicy(1)
	for _, x := range []struct {
		rule bigtable.GCPolicy
		want time.Duration
	}{
		{bigtable.NoGcPolicy(), Forever}, {nil, Forever}, {one, Forever}, {bigtable.MaxVersionsPolicy(5), Forever},
		{day, 24 * time.Hour}, {bigtable.UnionPolicy(one, week), 7 * 24 * time.Hour},
		{bigtable.UnionPolicy(week, day), 24 * time.Hour}, {bigtable.IntersectionPolicy(week, day), 7 * 24 * time.Hour},
		{bigtable.IntersectionPolicy(one, day), Forever}, {bigtable.IntersectionPolicy(), Forever},
		{bigtable.UnionPolicy(one, bigtable.IntersectionPolicy(day, bigtable.UnionPolicy(week, one))), 7 * 24 * time.Hour},
	} {
		if got := keeps(x.rule); got != x.want {
			t.Errorf("%s: %v, want %v", gcText(x.rule), got, x.want)
		}
	}
}
