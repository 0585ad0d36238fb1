package config

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/change"
)

// Duration is a span of time, written with units: 10s, 1h30m.
type Duration time.Duration

// UnmarshalText reads Go's notation. It refuses a number without a unit, which Go would take as
// nanoseconds.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration: write a number with a unit, as in 10s, 5m or 168h", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes Go's notation.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String returns Go's notation.
func (d Duration) String() string { return time.Duration(d).String() }

// Size is a number of bytes, written plainly or with units: 20GiB, 96MiB, 1048576.
type Size int64

var sizePattern = regexp.MustCompile(`^[0-9]+(\.[0-9]+)? ?([KMGTP]i?B|B)?$`)

// UnmarshalText reads powers of 1024 (KiB, MiB, GiB, TiB) and of 1000 (KB, MB, GB, TB).
func (s *Size) UnmarshalText(text []byte) error {
	v, err := humanize.ParseBytes(string(text))
	if err != nil || !sizePattern.MatchString(string(text)) || v > 1<<62 {
		return fmt.Errorf("%q is not a size: write bytes, or a number with a unit, as in 96MiB or 20GiB", text)
	}
	*s = Size(v)
	return nil
}

// MarshalText writes a unit only if it does not round.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String returns the size in the largest unit without a remainder.
func (s Size) String() string {
	units := []string{"", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for s != 0 && s%1024 == 0 && i < len(units)-1 {
		s, i = s/1024, i+1
	}
	return fmt.Sprintf("%d%s", int64(s), units[i])
}

// Start is where reading begins if no mark exists. The zero Start means that the file sets none:
// five minutes before the first start with a backfill, else the trim horizon.
type Start struct {
	Horizon bool      // from the oldest record that the stream still has
	Latest  bool      // from now on: the first start resolves it to a time, once
	At      time.Time // from this time on, unless zero
}

// UnmarshalText reads trim_horizon, latest, or an RFC 3339 time.
func (s *Start) UnmarshalText(text []byte) error {
	switch v := string(text); v {
	case "":
		*s = Start{}
	case "trim_horizon":
		*s = Start{Horizon: true}
	case "latest":
		*s = Start{Latest: true}
	default:
		at, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return fmt.Errorf("%q is not a start: write trim_horizon, latest, or a time such as 2026-11-21T14:00:00Z", v)
		}
		*s = Start{At: at}
	}
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (s Start) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String returns the notation of the file.
func (s Start) String() string {
	switch {
	case s.Horizon:
		return "trim_horizon"
	case s.Latest:
		return "latest"
	case !s.At.IsZero():
		return s.At.Format(time.RFC3339)
	default:
		return ""
	}
}

// Mapping is the text of a table's mapping, from a file or inline. The zero Mapping stands for the
// preset `default`.
type Mapping struct {
	File string // path of the mapping file; of the configuration itself where the mapping is inline
	Data []byte // the YAML text; inline mappings keep the line numbers of the configuration
	Line int    // first line of an inline mapping, else 0
}

// IsZero reports whether no mapping was written.
func (m Mapping) IsZero() bool { return m.File == "" && m.Data == nil }

// Inline reports whether the mapping is written in the configuration itself.
func (m Mapping) Inline() bool { return m.Line > 0 }

// UnmarshalYAML takes a string as a path, and anything else as the mapping itself.
func (m *Mapping) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		if node.ShortTag() == "!!null" {
			return nil
		}
		if node.ShortTag() != "!!str" || node.Value == "" {
			return fmt.Errorf("a mapping is a path or a block of families and rules, not %q", node.Value)
		}
		*m = Mapping{File: node.Value}
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("a mapping is a path or a block of families and rules, not a list")
	}
	*m = Mapping{Line: node.Line}
	return nil
}

// Keys is the primary key of a table in the notation of the file: [pk:S, sk:N], partition key
// first.
type Keys []string

// Schema returns the declared key; ok is false if none is declared, or one that is not possible.
func (k Keys) Schema() (schema change.KeySchema, ok bool) {
	var attrs []change.KeyAttr
	for _, text := range k {
		at := strings.LastIndexByte(text, ':')
		if at < 1 || at != len(text)-2 || !strings.Contains("SNB", text[at+1:]) {
			return schema, false
		}
		attrs = append(attrs, change.KeyAttr{Name: text[:at], Type: text[at+1]})
	}
	switch {
	case len(attrs) == 1:
		return change.KeySchema{Partition: attrs[0]}, true
	case len(attrs) == 2 && attrs[0].Name != attrs[1].Name:
		return change.KeySchema{Partition: attrs[0], Sort: &attrs[1]}, true
	}
	return schema, false
}

// KeysOf returns a primary key in the notation of the file.
func KeysOf(schema change.KeySchema) Keys {
	k := Keys{fmt.Sprintf("%s:%c", schema.Partition.Name, schema.Partition.Type)}
	if s := schema.Sort; s != nil {
		k = append(k, fmt.Sprintf("%s:%c", s.Name, s.Type))
	}
	return k
}

// tableARN is the form of the ARN of a table: its region, and its name.
//
// Source:
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html
var tableARN = regexp.MustCompile(`^arn:[a-z0-9-]+:dynamodb:([a-z0-9-]+):\d{12}:table/([A-Za-z0-9_.-]{3,255})$`)

// settleARN names a table whose source is an ARN by the name in it. Logs, rows and commands use the
// name, so a pipeline has one table of each.
func (t *Table) settleARN() {
	if m := tableARN.FindStringSubmatch(t.Source); m != nil {
		t.ARN, t.Source = t.Source, m[2]
	}
}
