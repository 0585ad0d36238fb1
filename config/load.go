package config

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/problem"
)

// Load reads the file at path. The problems are all that can be found without leaving this machine; if any is an error,
// the Config is only as good as what could be decoded and must not be run. The error is for a file that cannot be read.
func Load(path string) (*Config, []Problem, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	cfg, problems := Parse(src, path)
	return cfg, problems, nil
}

// Parse is Load for a text already read; path is what relative paths are resolved against.
func Parse(src []byte, path string) (*Config, []Problem) {
	cfg := Default()
	cfg.File = path
	r := &report{}
	root, ok := r.tree(src)
	if !ok {
		return &cfg, r.problems
	}
	r.where = locate(root)
	r.twice()
	expanded := r.expand(root, filepath.Dir(path))
	r.decode(root, &cfg, expanded)
	r.secrets(&cfg, expanded)
	cfg.settle(r.where.written)
	cfg.resolve(filepath.Dir(path))
	r.mappings(&cfg, src)
	r.check(&cfg)
	return &cfg, r.sorted()
}

// tree parses the text; a file that is not YAML, or is empty, has that one problem.
func (r *report) tree(src []byte) (*yaml.Node, bool) {
	var root yaml.Node
	err := yaml.Load(src, &root)
	var at *yaml.LoadError
	switch {
	case len(bytes.TrimSpace(src)) == 0, err == nil && (len(root.Content) == 0 || root.Content[0].Kind == yaml.ScalarNode && root.Content[0].Value == ""):
		r.fault("empty", "", "start from tailrace.example.yaml, or let `replicator init --table NAME` propose one", "the file is empty")
		return nil, false
	case errors.As(err, &at):
		r.fault("syntax", "", "check indentation and quotes near this line", "not YAML: %s", at.Message)
		r.problems[0].Line = at.Mark.Line
		return nil, false
	case err != nil:
		r.fault("syntax", "", "check indentation and quotes", "not YAML: %v", err)
		return nil, false
	}
	return &root, true
}

// twice reports the keys that locate took out of the tree because the same block had them before.
func (r *report) twice() {
	for _, d := range r.where.doubles {
		r.fault("duplicate", d.path, "keep one of the two", "%s is written already in line %d", d.path, r.where.line(d.path))
		r.problems[len(r.problems)-1].Line = d.line
	}
}

// decode fills cfg strictly and turns every complaint of the decoder into a problem. Values that came from outside the
// file are secrets until proven otherwise: complaints about them do not repeat them.
func (r *report) decode(root *yaml.Node, cfg *Config, expanded map[spot]string) {
	err := root.Load(cfg, yaml.WithKnownFields())
	var all *yaml.LoadErrors
	if !errors.As(err, &all) {
		if err != nil {
			r.fault("bad_value", "", "compare with tailrace.example.yaml", "%v", err)
		}
		return
	}
	for _, e := range all.Errors {
		at := spot{e.Mark.Line, e.Mark.Column}
		path := r.where.bySpot[at]
		before := len(r.problems)
		if from, ok := expanded[at]; ok {
			r.fault("bad_value", path, "print the variable or file and compare with tailrace.example.yaml", "what %s holds cannot be used here", from)
		} else if key, ok := unknownKey(e.Message); ok {
			r.unknown(path, key)
		} else {
			r.fault("bad_value", path, "compare with tailrace.example.yaml", "%s", plainWords(e.Message))
		}
		r.problems[before].Line = e.Mark.Line
	}
}

func unknownKey(message string) (string, bool) {
	rest, ok := strings.CutPrefix(message, "field ")
	if !ok {
		return "", false
	}
	key, _, ok := strings.Cut(rest, " not found in type ")
	return key, ok
}

func (r *report) unknown(path, key string) {
	known := knownKeys(parent(path))
	hint := "known here: " + strings.Join(known, ", ")
	if k := problem.Nearest(key, known); k != "" {
		hint = fmt.Sprintf("did you mean %q? %s", k, hint)
	}
	r.fault("unknown_key", path, hint, "unknown key %q", key)
}

// plainWords rewrites the decoder's complaint about types for people who do not know Go.
func plainWords(message string) string {
	message = strings.TrimPrefix(message, "cannot construct ")
	kinds := strings.NewReplacer("!!str ", "the text ", "!!int ", "the number ", "!!float ", "the number ", "!!bool ", "",
		"!!seq", "a list", "!!map", "a block", "!!null", "nothing", " into ", " does not fit: expected ")
	words := kinds.Replace(message)
	if what, want, ok := strings.Cut(words, "expected "); ok {
		want = strings.TrimPrefix(want, "config.")
		switch {
		case strings.HasPrefix(want, "[]"):
			want = "a list"
		case want == "string":
			want = "text"
		case want == "int":
			want = "a whole number"
		case want == "bool":
			want = "true or false"
		case want == "Duration":
			want = "a duration such as 10s"
		case want == "Size":
			want = "a size such as 20GiB"
		default:
			want = "a block of keys"
		}
		words = what + "expected " + want
	}
	return words
}

// secrets warns of a password that stands in the file itself.
func (r *report) secrets(c *Config, expanded map[spot]string) {
	if n := r.where.values["queue.url"]; n == nil || expanded[spot{n.Line, n.Column}] != "" {
		return
	}
	for server := range strings.SplitSeq(c.Queue.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(server)); err == nil && u.User != nil {
			r.warn("secret", "queue.url", `take it from outside, as in url: "${NATS_URL}" or "${file:/run/secrets/nats-url}", or use queue.creds`,
				"a password or token stands in the file")
			return
		}
	}
}

// resolve makes the file's relative paths relative to the file.
func (c *Config) resolve(dir string) {
	tls := &c.Queue.TLS
	paths := []*string{&c.Queue.Dir, &c.Queue.Creds, &tls.CA, &tls.Cert, &tls.Key, &c.Archive.File}
	for i := range c.Tables {
		paths = append(paths, &c.Tables[i].Mapping.File)
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
}

// mappings reads the mapping files, and cuts the inline mappings out of the text.
func (r *report) mappings(cfg *Config, src []byte) {
	for i := range cfg.Tables {
		m, path := &cfg.Tables[i].Mapping, fmt.Sprintf("tables[%d].mapping", i)
		switch {
		case m.Inline():
			m.File = cfg.File
			m.Data = inlineText(src, r.where.values[path])
		case m.File != "":
			data, err := os.ReadFile(m.File)
			if err != nil {
				r.fault("unreadable", path, "paths are relative to the configuration file", "the mapping file cannot be read: %v", err)
				continue
			}
			m.Data = data
		}
	}
}

// inlineText copies the lines of a block out of the file, with empty lines before it: what a parser says about lines is
// then true of the file. A block in flow style shares its lines with others, so it is written anew.
func inlineText(src []byte, block *yaml.Node) []byte {
	if block == nil {
		return nil
	}
	before := bytes.Repeat([]byte{'\n'}, block.Line-1)
	if block.Style&yaml.FlowStyle != 0 {
		text, err := yaml.Dump(block)
		if err != nil { // a node that was just parsed can be written
			panic(fmt.Sprintf("write inline mapping: %v", err))
		}
		return append(before, text...)
	}
	for i, line := range bytes.SplitAfter(src, []byte{'\n'}) {
		if i < block.Line-1 {
			continue
		}
		text := bytes.TrimLeft(line, " ")
		indent := len(line) - len(text)
		if indent < block.Column-1 && len(bytes.TrimSpace(text)) > 0 && text[0] != '#' {
			break
		}
		before = append(before, line...)
	}
	return before
}
