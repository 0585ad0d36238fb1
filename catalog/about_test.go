package catalog

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/source"
)

// openAccount opens an account. Its tables have the key pk, and there is no table User.
func openAccount(t *testing.T) *source.Source {
	t.Helper()
	dynamo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"User"`) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"not found"}`)
			return
		}
		name := regexp.MustCompile(`"TableName":"([^"]*)"`).FindStringSubmatch(string(body))[1]
		fmt.Fprintf(w, `{"Table":{"TableName":%q,"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],
"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]},
"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`, name)
	}))
	t.Cleanup(dynamo.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	src, err := source.Open(t.Context(), source.Options{Region: "eu-west-1", Endpoint: dynamo.URL}, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(src.Close)
	return src
}

func sources(c *Catalog) (names []string) {
	for _, t := range c.Tables {
		names = append(names, t.Source)
	}
	return names
}

// TestDeletedTableKeepsNoCommandFromTablesOfOtherTargets: a command about a table describes it and
// the others of its target; a command about each target goes on with those that are whole.
func TestDeletedTableKeepsNoCommandFromTablesOfOtherTargets(t *testing.T) {
	src := openAccount(t)
	log, user := table("Log", "log", mapping), table("User", "user", mapping)
	log.ARN = "arn:aws:dynamodb:eu-west-1:000000000000:table/Log"
	one := strings.ReplaceAll(mapping, `row: "{p}"`, `row: "a#{p}"`)
	two := strings.ReplaceAll(mapping, `row: "{p}"`, `row: "b#{p}"`)
	for name, c := range map[string]struct {
		tables        []config.Table
		named         string
		want, leftOut []string // want nil: an error
	}{
		"of its own target":      {[]config.Table{user, log}, "Log", []string{"Log"}, nil},
		"by its ARN":             {[]config.Table{user, log}, log.ARN, []string{"Log"}, nil},
		"the deleted one":        {[]config.Table{user, log}, "User", nil, nil},
		"each":                   {[]config.Table{user, log}, "", []string{"Log"}, []string{"User"}},
		"each, and none is left": {[]config.Table{user}, "", nil, nil},
		"of the deleted target":  {[]config.Table{table("User", "log", one), table("Log", "log", two)}, "Log", nil, nil},
		"each, of its own target": {[]config.Table{table("User", "a", one), table("Log", "a", two), table("B", "b", mapping)},
			"", []string{"B"}, []string{"User", "Log"}},
		"each, without a target": {[]config.Table{table("User", "", ""), table("Log", "", "")},
			"", []string{"Log"}, []string{"User"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, load := configured(c.tables...), Load
			if c.named == "" {
				load = LoadEach
			}
			got, err := load(t.Context(), About(cfg, c.named), src)
			if c.want == nil {
				if err == nil || !strings.Contains(err.Error(), "User") {
					t.Errorf("error %v, want one about User", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, l := range got.LeftOut {
				left = append(left, l.Source)
			}
			if !slices.Equal(sources(got), c.want) || !slices.Equal(left, c.leftOut) {
				t.Errorf("tables %v, left out %v; want %v, %v", sources(got), left, c.want, c.leftOut)
			}
			if c.named != "" && got.Table(c.named).Path != "tables[1]" {
				t.Errorf("the table is at %s", got.Table(c.named).Path)
			}
		})
	}
}
