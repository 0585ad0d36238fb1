package tableschema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/transform"
)

// Difference is a table, family, rule or type that is missing or not as wanted.
type Difference struct {
	Kind   Kind   `json:"code"`
	Table  string `json:"table"`
	Family string `json:"family,omitempty"` // empty: the whole table is missing
	Have   string `json:"have"`             // GC rule, aggregate type, or "missing"
	Want   string `json:"want"`

	// Keeps is how long the newest cell of a column stays at least under the rule that was found,
	// Needs the same under the wanted one; Forever for both if no rule collects it. They are 0 for
	// other kinds than WrongRule.
	Keeps time.Duration `json:"-"`
	Needs time.Duration `json:"-"`

	fix  func(ctx context.Context, admin *bigtable.AdminClient, force bool) error
	text []string
}

// Kind is the kind of a difference.
type Kind string

// The kinds of a Difference.
const (
	NoTable   Kind = "table_missing"
	NoFamily  Kind = "family_missing"
	WrongType Kind = "family_type"
	WrongRule Kind = "gc_rule"
)

// CBT returns the commands that remove the difference.
func (d Difference) CBT() []string { return d.text }

const missing = "missing"

// Diff compares an instance with the wanted tables. Nothing is written.
func Diff(ctx context.Context, admin *bigtable.AdminClient, want []Table) ([]Difference, error) {
	var out []Difference
	for _, t := range want {
		found, err := diffTable(ctx, admin, t)
		if err != nil {
			return nil, fmt.Errorf("compare table %s: %w", t.Name, err)
		}
		out = append(out, found...)
	}
	return out, nil
}

func diffTable(ctx context.Context, admin *bigtable.AdminClient, t Table) ([]Difference, error) {
	info, err := admin.TableInfo(ctx, t.Name)
	if status.Code(err) == codes.NotFound {
		return []Difference{missingTable(t)}, nil
	}
	if err != nil {
		return nil, err
	}
	have := map[string]bigtable.FamilyInfo{}
	for _, f := range info.FamilyInfos {
		have[f.Name] = f
	}
	var out []Difference
	for _, f := range t.Families {
		found, ok := have[f.Name]
		switch rule, kind := gcText(found.FullGCPolicy), aggregateOf(found.ValueType); {
		case !ok:
			out = append(out, missingFamily(t.Name, f))
		case kind != typeOf(f):
			out = append(out, wrongType(t.Name, kind, f))
		case rule != ruleOf(f):
			d := wrongRule(t.Name, rule, f)
			d.Keeps, d.Needs = keeps(found.FullGCPolicy), keeps(policyOf(f))
			out = append(out, d)
		}
	}
	return out, nil
}

func missingTable(t Table) Difference {
	return Difference{Kind: NoTable, Table: t.Name, Have: missing, Want: "table", text: []string{t.CBT()},
		fix: func(ctx context.Context, admin *bigtable.AdminClient, _ bool) error {
			return admin.CreateTableFromConf(ctx, tableConf(t))
		}}
}

func tableConf(t Table) *bigtable.TableConf {
	conf := &bigtable.TableConf{TableID: t.Name, ColumnFamilies: map[string]bigtable.Family{}}
	for _, key := range t.Splits {
		conf.SplitKeys = append(conf.SplitKeys, string(key))
	}
	for _, f := range t.Families {
		conf.ColumnFamilies[f.Name] = familyConfig(f)
	}
	return conf
}

func missingFamily(table string, f transform.Family) Difference {
	create := "cbt createfamily " + table + " " + f.Name
	if kind := typeOf(f); kind != "" {
		create += ":" + kind
	}
	commands := []string{create, setRule(table, f)}
	return Difference{Kind: NoFamily, Table: table, Family: f.Name, Have: missing, Want: ruleOf(f), text: commands,
		fix: func(ctx context.Context, admin *bigtable.AdminClient, _ bool) error {
			return admin.CreateColumnFamilyWithConfig(ctx, table, f.Name, familyConfig(f))
		}}
}

// wrongType returns the difference of a family with another type, which cannot be fixed: Bigtable
// never changes the type of a family. Source:
// https://cloud.google.com/bigtable/docs/managing-tables#modify-column-families
func wrongType(table, have string, f transform.Family) Difference {
	name := func(kind string) string { return cmp.Or(kind, "plain cells") }
	way := "a family cannot change its type: give it another name in the mapping, or recreate the table"
	commands := []string{"# " + way}
	return Difference{
		Kind: WrongType, Table: table, Family: f.Name, Have: name(have), Want: name(typeOf(f)), text: commands,
		fix: func(context.Context, *bigtable.AdminClient, bool) error { return errors.New(way) },
	}
}

func wrongRule(table, have string, f transform.Family) Difference {
	return Difference{
		Kind: WrongRule, Table: table, Family: f.Name, Have: have, Want: ruleOf(f), text: []string{setRule(table, f)},
		fix: func(ctx context.Context, admin *bigtable.AdminClient, force bool) error {
			var options []bigtable.GCPolicyOption
			if force {
				options = append(options, bigtable.IgnoreWarnings())
			}
			err := admin.SetGCPolicyWithOptions(ctx, table, f.Name, policyOf(f), options...)
			if status.Code(err) == codes.FailedPrecondition && !force {
				return &RelaxedError{err}
			}
			return err
		},
	}
}

func setRule(table string, f transform.Family) string {
	return "cbt setgcpolicy " + table + " " + f.Name + " '" + ruleOf(f) + "'"
}

// RelaxedError is the refusal of a rule that keeps cells longer than the one before, in an instance
// with several clusters: some of them may have collected what others still have.
// https://cloud.google.com/bigtable/docs/garbage-collection#increasing
type RelaxedError struct{ err error }

func (e *RelaxedError) Error() string { return e.err.Error() }
func (e *RelaxedError) Unwrap() error { return e.err }

// Fix removes differences. It may be repeated and run by several processes at once. It never drops
// a table or family. With force rules may keep more in an instance that is replicated; else Fix
// returns a RelaxedError there.
func Fix(ctx context.Context, admin *bigtable.AdminClient, found []Difference, force bool) error {
	for _, d := range found {
		if err := d.fix(ctx, admin, force); err != nil && status.Code(err) != codes.AlreadyExists {
			what := strings.TrimSuffix(d.Table+" family "+d.Family, " family ")
			return fmt.Errorf("change table %s: %w", what, err)
		}
	}
	return nil
}
