package yamlfile

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/problem"
)

// even is a number that a text holds.
type even int

func (e *even) UnmarshalText(text []byte) error {
	if len(text) != 1 || text[0]%2 != 0 {
		return errors.New("write an even digit")
	}
	*e = even(text[0] - '0')
	return nil
}

type part struct {
	Name  string   `yaml:"name"`
	Count int      `yaml:"count"`
	Even  even     `yaml:"even"`
	Tags  []string `yaml:"tags"`
	On    bool     `yaml:"on"`
	Other string   `yaml:"-"`
}

type file struct {
	Part  part   `yaml:"part"`
	Parts []part `yaml:"parts"`

	ByName map[string]part `yaml:"by_name"`
}

func read(text string, merge bool) (*Reader, file) {
	r := &Reader{KindCode: "kind", ValueCode: "value", Example: "see example", Merge: merge}
	var f file
	if n := r.Load([]byte(text)); n != nil {
		r.Decode(n, "", &f)
	}
	problem.Sort(r.List)
	return r, f
}

func TestMapsAreReadByName(t *testing.T) {
	r, f := read("by_name: {a: {count: 1}, b.c: {count: x}, d: text, a: {}, e: null}\n", false)
	want := map[string]part{"a": {Count: 1}, "b.c": {}, "d": {}, "e": {}}
	if d := cmp.Diff(want, f.ByName); d != "" {
		t.Error(d)
	}
	var paths []string
	for _, p := range r.List {
		paths = append(paths, p.Path+" "+p.Code)
	}
	if d := cmp.Diff([]string{"by_name.b.c.count kind", "by_name.d kind", "by_name.a duplicate"}, paths); d != "" {
		t.Error(d)
	}
}

func TestProblemsOfAFileAreFoundAtOnce(t *testing.T) {
	r, f := read(`part: {name: a, count: many, even: 3, on: 7, nmae: b}
parts:
- {name: [a], tags: x, count: 1.5}
- text
- {name: last, even: 4, name: twice}
part: {name: second}
others: 1
`, false)
	var got []string
	for _, p := range r.List {
		got = append(got, p.String()+" ["+p.Code+"]")
	}
	want := []string{
		"error: line 1: part.count: the text `many` does not fit: expected a whole number [kind]",
		"error: line 1: part.even: write an even digit [value]",
		"error: line 1: part.on: the number `7` does not fit: expected true or false [kind]",
		`error: line 1: part.nmae: unknown key "nmae" [unknown_key]`,
		"error: line 3: parts[0].name: a list does not fit: expected text [kind]",
		"error: line 3: parts[0].tags: the text `x` does not fit: expected a list [kind]",
		"error: line 3: parts[0].count: the number `1.5` does not fit: expected a whole number [kind]",
		"error: line 4: parts[1]: the text `text` does not fit: expected a block of keys [kind]",
		`error: line 5: parts[2].name: "name" is written twice, first in line 5 [duplicate]`,
		`error: line 6: part: "part" is written twice, first in line 1 [duplicate]`,
		`error: line 7: others: unknown key "others" [unknown_key]`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(f.Parts) != 3 || f.Parts[2].Name != "last" || f.Parts[2].Even != 4 || f.Part.Name != "a" {
		t.Errorf("what could be read: %+v", f)
	}
	if r.Written("parts[2].even") == false || r.Written("parts[2].tags") || r.At("parts[2].tags").Line != 5 ||
		r.At("x.y").Line != 0 {
		t.Error("places")
	}
}

func TestFileThatIsNotYAML(t *testing.T) {
	r, _ := read("part:\n  a: [\n", false)
	if len(r.List) != 1 || r.List[0].Code != "syntax" || r.List[0].Line != 3 {
		t.Errorf("%v", r.List)
	}
	for _, text := range []string{"", "  \n", "# nothing\n", "---\n", "part:\n"} {
		if r, _ := read(text, false); len(r.List) > 0 {
			t.Errorf("%q: %v", text, r.List)
		}
	}
}

// TestMergedBlocks: keys of the block win over merged ones, in any order, and an anchor may be used
// inside its own block.
func TestMergedBlocks(t *testing.T) {
	const text = "parts:\n- &a {name: a, count: 1}\n- {<<: *a, count: 2}\n- {name: b, <<: [*a, {count: 3, on: " +
		"true}]}\n- &c {<<: *c, name: c}\n"
	r, f := read(text, true)
	want := []part{{Name: "a", Count: 1}, {Name: "a", Count: 2}, {Name: "b", Count: 1, On: true}, {Name: "c"}}
	if d := cmp.Diff(want, f.Parts); d != "" || len(r.List) > 0 {
		t.Errorf("%v\n%s", r.List, d)
	}
	if r, _ := read(text, false); len(r.List) != 3 || r.List[0].Code != "unknown_key" {
		t.Errorf("merges are off: %v", r.List)
	}
	if r, _ := read("part: {<<: 3}\n", true); len(r.List) != 1 || r.List[0].Code != "kind" {
		t.Errorf("a number cannot be merged: %v", r.List)
	}
}

// TestValuesFromOutsideAreNotRepeated: they may be secrets.
func TestValuesFromOutsideAreNotRepeated(t *testing.T) {
	r := &Reader{KindCode: "kind", ValueCode: "value", Example: "see example"}
	n := r.Load([]byte("part: {count: s3cret}\n"))
	value := n.Content[1].Content[1]
	r.Origins = map[*yaml.Node]string{value: "${COUNT}"}
	r.Decode(n, "", new(file))
	if len(r.List) != 1 || r.List[0].What != "what ${COUNT} holds cannot be used here" {
		t.Errorf("%v", r.List)
	}
}

// FuzzDecode asserts that no text makes the reader panic or recurse without end, and that problems
// have code and words.
func FuzzDecode(f *testing.F) {
	f.Add("part: {name: a}\nparts: [{<<: {name: b}}, 3, *x]\n")
	f.Add("a: &a [*a]\n<<: {part: x}\n? [1]\n: 2\n")
	f.Add("part: &p {<<: [*p, &q {<<: *p, tags: [1, [2]]}]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, _ := read(text, true)
		if slices.ContainsFunc(r.List, func(p problem.Problem) bool { return p.Code == "" || p.What == "" }) {
			t.Errorf("%q: %v", text, r.List)
		}
	})
}
