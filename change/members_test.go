package change

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMembersAndElementsOfAReply(t *testing.T) {
	var got []string
	raw := ` {"a" : {"x":["}"]}, "b":[ 1 ,"\"]" , {} ],"c":null} `
	err := Members([]byte(raw), func(name, value []byte) error {
		got = append(got, string(name)+"="+string(value))
		if string(name) == "b" {
			return Elements(value, func(e []byte) error { got = append(got, string(e)); return nil })
		}
		return nil
	})
	want := []string{`a={"x":["}"]}`, `b=[ 1 ,"\"]" , {} ]`, `1`, `"\"]"`, `{}`, `c=null`}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	stop := errors.New("stop")
	if err := Members([]byte(raw), func(_, _ []byte) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestCutRepliesAreMalformed(t *testing.T) {
	none := func([]byte) error { return nil }
	for _, raw := range []string{``, `null`, `[1,2`, `[1,2]x`, `[1 2]`, `{}`, `[`, `[,]`} {
		if err := Elements([]byte(raw), none); !errors.Is(err, ErrMalformed) {
			t.Errorf("array %q: %v", raw, err)
		}
	}
	for _, raw := range []string{``, `null`, `{"a":1`, `{"a"}`, `{"a":}`, `{"a":1}{}`, `[]`, `{"a":"`} {
		if err := Members([]byte(raw), func(_, _ []byte) error { return nil }); !errors.Is(err, ErrMalformed) {
			t.Errorf("object %q: %v", raw, err)
		}
	}
}

// FuzzMembers: whatever is valid JSON is read as encoding/json reads it, and nothing makes the
// scanner panic.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{"Items":[{"a":{"S":"x"}}],"Count":1}`, `{"a":[[],{}],"b":"\\\""}`, `{`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		n := 0
		err := Members(raw, func(_, value []byte) error {
			n++
			_ = Elements(value, func([]byte) error { return nil })
			return nil
		})
		var want map[string]json.RawMessage
		if json.Unmarshal(raw, &want) == nil && want != nil && (err != nil || n < len(want)) {
			t.Errorf("%q: %d members of %d, %v", raw, n, len(want), err)
		}
	})
}
