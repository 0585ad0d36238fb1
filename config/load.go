package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/problem"
)

// Load reads the file at path. The problems are all that can be found without a connection; if one
// is an error, the Config is incomplete and must not be run. The error is for a file that cannot be
// read.
func Load(path string) (*Config, []problem.Problem, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	cfg, problems := Parse(src, path)
	return cfg, problems, nil
}

// Parse is Load for a text that was already read; relative paths in it are resolved against the
// directory of path.
func Parse(src []byte, path string) (*Config, []problem.Problem) {
	cfg := Default()
	cfg.File = path
	r := newReport()
	root := r.Load(src)
	if root == nil {
		return &cfg, r.List
	}
	if root.Kind == yaml.ScalarNode && root.Value == "" {
		r.fault("empty", "", "start from tailrace.example.yaml, or let `replicator init --table NAME` propose one",
			"the file is empty")
		return &cfg, r.List
	}
	r.expand(root, filepath.Dir(path))
	r.Decode(root, "", &cfg)
	r.secrets(&cfg)
	cfg.settle(r.Written)
	cfg.resolve(filepath.Dir(path))
	r.mappings(&cfg, src)
	r.check(&cfg)
	cfg.partSelections()
	problem.Sort(r.List)
	return &cfg, r.List
}

// Locate sets the lines of problems that were found elsewhere, such as at a server, by their paths
// in the file. Without the file they stay 0.
func (c *Config) Locate(problems []problem.Problem) {
	src, err := os.ReadFile(c.File)
	if err != nil {
		return
	}
	r, again := newReport(), Default()
	if root := r.Load(src); root != nil {
		r.Decode(root, "", &again)
	}
	for i := range problems {
		if p := &problems[i]; p.Line == 0 && p.File == "" {
			p.Line = r.At(p.Path).Line
		}
	}
}

// resolve makes relative paths relative to dir, the directory of the file.
func (c *Config) resolve(dir string) {
	c.Archive.resolve(dir)
	tls := &c.Queue.TLS
	paths := []*string{
		&c.Queue.Dir, &c.Queue.Creds, &tls.CA, &tls.Cert, &tls.Key, &c.Archive.File, &c.Scratch, &c.Bigtable.CA,
	}
	for i := range c.Tables {
		t := &c.Tables[i]
		paths = append(paths, &t.Mapping.File)
		t.Backfill.URL = resolveURL(t.Backfill.URL, dir)
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
}

// mappings reads the mapping files, and copies the inline mappings out of the text.
func (r *report) mappings(cfg *Config, src []byte) {
	for i := range cfg.Tables {
		m, path := &cfg.Tables[i].Mapping, fmt.Sprintf("tables[%d].mapping", i)
		switch {
		case m.Inline():
			m.File = cfg.File
			m.Data = inlineText(src, r.Value(path))
		case m.File != "":
			data, err := os.ReadFile(m.File)
			if err != nil {
				r.fault("unreadable", path, "paths are relative to the configuration file", "the mapping file cannot be read: %v",
					err)
				continue
			}
			m.Data = data
		}
	}
}

// ReadMappingsAgain returns the configuration with the mapping files as they are now. A mapping
// that stands in the configuration itself stays as it was read.
func (c *Config) ReadMappingsAgain() (*Config, error) {
	fresh := *c
	fresh.Tables = slices.Clone(c.Tables)
	for i := range fresh.Tables {
		m := &fresh.Tables[i].Mapping
		if m.Inline() || m.File == "" {
			continue
		}
		data, err := os.ReadFile(m.File)
		if err != nil {
			return nil, fmt.Errorf("read the mapping of %s again: %w", fresh.Tables[i].Source, err)
		}
		m.Data = data
	}
	return &fresh, nil
}

// inlineText returns the lines of an inline mapping, after as many empty lines as stand before it
// in the file, so that problems carry the line numbers of the file. A block in flow style shares
// its lines with other keys, so it is dumped as YAML.
func inlineText(src []byte, block *yaml.Node) []byte {
	if block == nil {
		return nil
	}
	if block.Style&yaml.FlowStyle != 0 {
		text, err := yaml.Dump(block)
		if err != nil { // a node that was just parsed can be written
			panic(fmt.Sprintf("write inline mapping: %v", err))
		}
		return append(bytes.Repeat([]byte{'\n'}, block.Line-1), text...)
	}
	first := block.Content[0] // the block itself begins at its anchor, if it has one, beside the key `mapping`
	before := bytes.Repeat([]byte{'\n'}, first.Line-1)
	for i, line := range bytes.SplitAfter(src, []byte{'\n'}) {
		if i < first.Line-1 {
			continue
		}
		text := bytes.TrimLeft(line, " ")
		indent := len(line) - len(text)
		if indent < first.Column-1 && len(bytes.TrimSpace(text)) > 0 && text[0] != '#' {
			break
		}
		before = append(before, line...)
	}
	return before
}
