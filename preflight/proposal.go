package preflight

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/source"
)

// tableMark stands for the name of a source table in the name of a target.
const tableMark = "{table}"

// maxTarget is the longest name of a target table.
const maxTarget = 50

// targetOf returns the target of a table, as Bigtable takes names.
func targetOf(template, table string) string {
	name := strings.ReplaceAll(template, tableMark, plain(table))
	name = cmp.Or(strings.TrimLeft(name, "-"), "table") // names of Bigtable begin with a letter or digit
	return name[:min(maxTarget, len(name))]
}

// separate gives each table a target of its own: names that differ only in what Bigtable does not
// take, or in the case of letters, become one. Tables that share a target need a mapping that keeps
// their rows apart, which no proposal has.
func separate(tables []*Proposed) {
	taken := map[string]bool{}
	for _, t := range tables {
		name := t.Target
		for n := 2; taken[name]; n++ {
			suffix := "-" + strconv.Itoa(n)
			name = t.Target[:min(len(t.Target), maxTarget-len(suffix))] + suffix
		}
		t.Target, taken[name] = name, true
	}
}

// scalar returns a name as a value of YAML, quoted where it would be something else, as null or 1e3
// would be.
func scalar(name string) string {
	b, err := yaml.Marshal(name)
	if err != nil {
		return strconv.Quote(name)
	}
	return strings.TrimSpace(string(b))
}

// plain returns a table's name in small letters, digits and dashes.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-", r) {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}

// pipelineOf returns the name of the pipeline: the one that was given, or one after the first table
// or pattern.
func pipelineOf(o *ProposeOptions) string {
	return cmp.Or(o.Pipeline, strings.Trim(plain(o.Tables[0]), "-"), "main")
}

// Configuration returns the smallest configuration for the tables, with the proposed mappings
// inline.
func Configuration(o *ProposeOptions, tables []*Proposed) string {
	b := &strings.Builder{}
	b.WriteString("# yaml-language-server: $schema=tailrace.schema.json" +
		"   # for editors: replicator config schema >tailrace.schema.json\n")
	fmt.Fprintf(b, "pipeline: %s   # identity of the stored state; never reuse it for other tables\n",
		scalar(pipelineOf(o)))
	fmt.Fprintf(b, "source: {region: %q", o.Region)
	if o.Endpoint != "" {
		fmt.Fprintf(b, ", endpoint: %q", o.Endpoint)
	}
	fmt.Fprintf(b, "}\nbigtable: {project: %s, instance: %s}\nqueue: {dir: ./tailrace-data}\n",
		scalar(cmp.Or(o.Project, "MY-PROJECT")), scalar(cmp.Or(o.Instance, "MY-INSTANCE")))
	for _, t := range tables {
		if t.info.TTLAttr != "" {
			fmt.Fprint(b, "# archive: {url: \"s3://MY-BUCKET/prefix\"}   # for on_ttl_expiry: archive\n")
			break
		}
	}
	b.WriteString("tables:\n")
	for _, t := range tables {
		t.write(b)
	}
	return b.String()
}

// write writes the block of a table.
func (t *Proposed) write(b *strings.Builder) {
	fmt.Fprintf(b, "- source: %s\n  target: %s\n  keys: [%s]\n", scalar(t.Source), scalar(t.Target), quotedKeys(&t.info))
	if t.info.TTLAttr != "" {
		fmt.Fprintf(b, "  on_ttl_expiry: delete   # items expire by %q: delete, keep or archive\n", t.info.TTLAttr)
	}
	b.WriteString("  mapping:\n")
	for line := range strings.Lines(t.mapping) {
		if strings.TrimSpace(line) != "" {
			line = "    " + line
		}
		b.WriteString(line)
	}
}

// quotedKeys returns the table's key as the items of a YAML list.
func quotedKeys(info *source.TableInfo) string {
	var all []string
	for _, k := range config.KeysOf(info.Schema) {
		all = append(all, strconv.Quote(k))
	}
	return strings.Join(all, ", ")
}
