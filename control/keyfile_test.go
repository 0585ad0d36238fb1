package control

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

var sorted = change.KeySchema{
	Partition: change.KeyAttr{Name: "pk", Type: 'S'}, Sort: &change.KeyAttr{Name: "n", Type: 'N'},
}

func read(text string, schema change.KeySchema) (keys []string, err error) {
	for key, err := range ReadKeys(strings.NewReader(text), schema) {
		if err != nil {
			return keys, err
		}
		keys = append(keys, string(key))
	}
	return keys, nil
}

// TestKeyIsTheSameInEveryNotation: typed, plain, with the attributes in another order, and inside a
// whole item. The mark that Windows' editors begin a file with is no part of it.
func TestKeyIsTheSameInEveryNotation(t *testing.T) {
	got, err := read("\ufeff"+`{"pk":{"S":"hats"},"n":{"N":"12.50"}}
{"n":12.5,"pk":"hats"}

  {"pk":"hats","n":"1.25e1","price":{"N":"3"},"more":[1,2]}
{"n":{"N":"+12.5"},"pk":{"S":"h\u0061ts"}}`, sorted)
	const key = `{"pk":{"S":"hats"},"n":{"N":"12.5"}}`
	if d := cmp.Diff([]string{key, key, key, key}, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	binary := change.KeySchema{Partition: change.KeyAttr{Name: "id", Type: 'B'}}
	got, err = read(`{"id":"AQID"}`+"\n"+`{"id":{"B":"AQID"}}`, binary)
	if d := cmp.Diff([]string{`{"id":{"B":"AQID"}}`, `{"id":{"B":"AQID"}}`}, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
}

// TestLineThatIsNoKeyIsNamedAndNotRepeated: a wrong line may hold personal data.
func TestLineThatIsNoKeyIsNamedAndNotRepeated(t *testing.T) {
	for text, want := range map[string]string{
		`"s3cret"`:                          "line 2: it is not a JSON object",
		`{"pk":"s3cret`:                     "line 2: it is not a JSON object",
		`null`:                              "line 2: it is not a JSON object",
		`{"pk":"s3cret"}`:                   `line 2: key attribute "n" is missing`,
		`{"pk":12,"n":12}`:                  `line 2: key attribute "pk" must be of type S`,
		`{"pk":"s3cret","n":true}`:          `line 2: key attribute "n" must be of type N`,
		`{"pk":"s3cret","n":"twelve"}`:      `line 2: key attribute "n": `,
		`{"pk":{"N":"1"},"n":1}`:            `line 2: key attribute "pk" is of type N, the table's schema says S`,
		`{"pk":{"S":"s3cret","N":1},"n":1}`: "line 2: its key attributes are not in DynamoDB's notation",
	} {
		keys, err := read(`{"pk":"a","n":1}`+"\n"+text+"\n"+`{"pk":"b","n":2}`, sorted)
		var line *LineError
		if len(keys) != 1 || !errors.As(err, &line) || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %q after %d keys, want %q", text, err, len(keys), want)
		}
	}
}
