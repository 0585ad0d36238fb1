package export

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWholeness: only DynamoDB's own description makes an export whole, and any sign of a filter
// makes it filtered.
func TestWholeness(t *testing.T) {
	some := []string{"FilterExpression"}
	for _, c := range []struct {
		described         bool
		filters, manifest []string
		want              Wholeness
	}{
		{true, nil, nil, Whole},
		{true, some, nil, Filtered},
		{true, nil, some, Filtered},
		{false, nil, nil, Unconfirmed},
		{false, nil, some, Filtered},
	} {
		if got := wholeness(c.described, c.filters, c.manifest); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestManifestThatTellsOfAFilter, under any name and at any depth; members without a value tell
// nothing.
func TestManifestThatTellsOfAFilter(t *testing.T) {
	for text, want := range map[string][]string{
		`{"tableArn":"a","itemCount":3}`:                                        nil,
		`{"filterSpecification":null,"FilterExpression":"","keyConditions":[]}`: nil,
		`{"filterSpecification":{"filterExpression":null}}`:                     nil,
		`{"filtered":false}`:                                                    nil,
		`{"filtered":true}`:                                                     {"filtered"},
		`{"filterExpression":"n > :n"}`:                                         {"filterExpression"},
		`{"export":[{"ProjectionExpression":"pk"}],"keyConditionExpression":"k=:k"}`: {
			"ProjectionExpression", "keyConditionExpression"},
	} {
		got, err := filtersOf([]byte(text))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
	f := newFixture(t, items(0, 3)).write()
	if e, err := f.open(Want{}); err != nil || e.Wholeness != Unconfirmed || e.Unasked == "" {
		t.Errorf("a manifest that says nothing: %+v, %v", e, err)
	}
}
