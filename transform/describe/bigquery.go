package describe

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/tailrace-cdc/replicator/transform"
)

// External is the definition of a target as an external table of BigQuery: `bq mk
// --external_table_definition=FILE`. Source:
// https://cloud.google.com/bigquery/docs/reference/rest/v2/tables#bigtableoptions
type External struct {
	SourceFormat string          `json:"sourceFormat"`
	SourceURIs   []string        `json:"sourceUris"`
	Options      BigtableOptions `json:"bigtableOptions"`
}

// BigtableOptions says which families and columns are read. Families that are not named are ignored:
// the replicator's own hold guards, which no reader needs.
type BigtableOptions struct {
	IgnoreUnspecified  bool             `json:"ignoreUnspecifiedColumnFamilies"`
	ReadRowkeyAsString bool             `json:"readRowkeyAsString"`
	Families           []ExternalFamily `json:"columnFamilies"`
}

// ExternalFamily is one family. Its columns without a name in the mapping are read as its type.
type ExternalFamily struct {
	ID         string           `json:"familyId"`
	Type       string           `json:"type"`
	Encoding   string           `json:"encoding"`
	OnlyLatest bool             `json:"onlyReadLatest"`
	Columns    []ExternalColumn `json:"columns,omitempty"`
}

// ExternalColumn is one column with a fixed name.
type ExternalColumn struct {
	Qualifier  string `json:"qualifierString,omitempty"`
	Encoded    string `json:"qualifierEncoded,omitempty"` // base64, of a name that is no text
	Field      string `json:"fieldName,omitempty"`        // where the qualifier is no name in BigQuery
	Type       string `json:"type"`
	Encoding   string `json:"encoding"`
	OnlyLatest bool   `json:"onlyReadLatest"`
}

// BigQuery returns the external table of a target that some programs write. uri is the target's, as
// BigtableURI returns it.
func BigQuery(uri string, programs ...*transform.Program) External {
	out := External{SourceFormat: "BIGTABLE", SourceURIs: []string{uri}}
	out.Options = BigtableOptions{IgnoreUnspecified: true, ReadRowkeyAsString: true, Families: []ExternalFamily{}}
	at := map[string]int{}
	for _, p := range programs {
		for _, f := range p.Families() {
			if _, have := at[f.Name]; have || f.Aggregate != "" { // BigQuery reads no aggregates
				continue
			}
			at[f.Name] = len(out.Options.Families)
			out.Options.Families = append(out.Options.Families, ExternalFamily{
				ID: f.Name, Type: "STRING", Encoding: "TEXT", OnlyLatest: f.MaxVersions == 1,
			})
		}
	}
	for _, p := range programs {
		for _, c := range p.NamedColumns() {
			if i, have := at[c.Family]; have {
				f := &out.Options.Families[i]
				f.add(externalColumn(c, f.OnlyLatest))
			}
		}
	}
	return out
}

// BigtableURI returns the address of a table for BigQuery.
func BigtableURI(project, instance, table string) string {
	return fmt.Sprintf("https://googleapis.com/bigtable/projects/%s/instances/%s/tables/%s", project, instance, table)
}

// add adds a column unless a program before has it: then it is read as bytes where the types differ.
func (f *ExternalFamily) add(c ExternalColumn) {
	for i := range f.Columns {
		if o := &f.Columns[i]; o.Qualifier == c.Qualifier && o.Encoded == c.Encoded {
			if o.Type != c.Type || o.Encoding != c.Encoding {
				o.Type, o.Encoding = "BYTES", "BINARY"
			}
			return
		}
	}
	f.Columns = append(f.Columns, c)
}

// fieldName is what BigQuery takes as the name of a column.
var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func externalColumn(c transform.NamedColumn, latest bool) ExternalColumn {
	x := ExternalColumn{Type: "STRING", Encoding: "TEXT", OnlyLatest: latest}
	switch c.As {
	case "int64":
		x.Type, x.Encoding = "INTEGER", "BINARY"
	case "float64":
		x.Type, x.Encoding = "FLOAT", "BINARY"
	case "bool1":
		x.Type, x.Encoding = "BOOLEAN", "BINARY"
	case "protobuf", "":
		x.Type, x.Encoding = "BYTES", "BINARY"
	}
	if name := string(c.Qualifier); utf8.ValidString(name) {
		x.Qualifier = name
		if !fieldName.MatchString(name) {
			x.Field = "c_" + strings.Trim(noName.ReplaceAllString(name, "_"), "_")
		}
	} else {
		x.Encoded = base64.StdEncoding.EncodeToString(c.Qualifier)
		x.Field = "c_" + fmt.Sprintf("%x", c.Qualifier)
	}
	return x
}

var noName = regexp.MustCompile(`[^A-Za-z0-9_]+`)
