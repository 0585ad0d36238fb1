package catalog

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/source"
)

// TestTableThatIsDeletedDuringTheListingHasVanished: its log is still there. A table that is left
// out would be ended, and what was left in its stream would never be read. A table with tags that the
// role may not read is named, and the others are listed.
func TestTableThatIsDeletedDuringTheListingHasVanished(t *testing.T) {
	dynamo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch op := r.Header.Get("X-Amz-Target"); {
		case strings.HasSuffix(op, ".ListTables"):
			fmt.Fprint(w, `{"TableNames":["denied","going","making","staying"]}`)
		case strings.HasSuffix(op, ".ListTagsOfResource") && strings.Contains(string(body), "denied"):
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"not authorized"}`)
		case strings.HasSuffix(op, ".ListTagsOfResource") && strings.Contains(string(body), "staying"):
			fmt.Fprint(w, `{"Tags":[{"Key":"a","Value":"1"}]}`)
		default:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"not found"}`)
		}
	}))
	defer dynamo.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	src, err := source.Open(t.Context(), source.Options{Region: "eu-west-1", Endpoint: dynamo.URL}, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	l := newLister(src)
	l.place = "arn:aws:dynamodb:eu-west-1:000000000000:table/"
	got, err := l.list(t.Context(), &config.Config{Selections: []config.Table{{Tag: map[string]string{"a": "1"}}}},
		[]string{"gone", "going", "staying"})
	want := []config.Listed{
		{Name: "denied", Unread: "list tags of arn:aws:dynamodb:eu-west-1:000000000000:table/denied: " +
			"AccessDeniedException: not authorized"},
		{Name: "going", Logged: true, Missing: true},
		{Name: "staying", Logged: true, Tags: map[string]string{"a": "1"}},
		{Name: "gone", Logged: true, Missing: true},
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
}

// TestOneListWithoutTagsIsNotBelieved: it would choose another target for the table, for good. Two
// are.
func TestOneListWithoutTagsIsNotBelieved(t *testing.T) {
	asked := 0
	dynamo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch op := r.Header.Get("X-Amz-Target"); {
		case strings.HasSuffix(op, ".ListTables"):
			fmt.Fprint(w, `{"TableNames":["a"]}`)
		default:
			if asked++; asked == 2 {
				fmt.Fprint(w, `{"Tags":[{"Key":"a","Value":"1"}]}`)
				return
			}
			fmt.Fprint(w, `{"Tags":[]}`)
		}
	}))
	defer dynamo.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	src, err := source.Open(t.Context(), source.Options{Region: "eu-west-1", Endpoint: dynamo.URL}, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	l := newLister(src)
	l.place = "arn:aws:dynamodb:eu-west-1:000000000000:table/"
	cfg := &config.Config{Selections: []config.Table{{Tag: map[string]string{"a": "1"}}}}
	for _, want := range []map[string]string{{"a": "1"}, {}} { // asked twice, and twice in vain
		got, err := l.list(t.Context(), cfg, nil)
		if err != nil || len(got) != 1 || !cmp.Equal(got[0].Tags, want) {
			t.Errorf("%+v, %v, want tags %v", got, err, want)
		}
	}
	if asked != 4 {
		t.Errorf("asked %d times", asked)
	}
}

// TestTableThatOneListingLacksHasNotVanished: Rule 13. Its log is there, and DynamoDB describes it.
func TestTableThatOneListingLacksHasNotVanished(t *testing.T) {
	dynamo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		known := strings.Contains(string(body), "staying") || strings.Contains(string(body), "untagged")
		switch op := r.Header.Get("X-Amz-Target"); {
		case strings.HasSuffix(op, ".ListTables"):
			fmt.Fprint(w, `{"TableNames":["untagged"]}`)
		case strings.HasSuffix(op, ".DescribeTable") && known:
			fmt.Fprint(w, `{"Table":{"TableName":"staying","TableStatus":"ACTIVE","TableId":"1",
				"TableArn":"arn:aws:dynamodb:eu-west-1:000000000000:table/staying",
				"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],
				"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]}}`)
		case strings.HasSuffix(op, ".DescribeTimeToLive") && known:
			fmt.Fprint(w, `{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`)
		case strings.HasSuffix(op, ".ListTagsOfResource") && strings.Contains(string(body), "staying"):
			fmt.Fprint(w, `{"Tags":[{"Key":"a","Value":"1"}]}`)
		default:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"not found"}`)
		}
	}))
	defer dynamo.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	src, err := source.Open(t.Context(), source.Options{Region: "eu-west-1", Endpoint: dynamo.URL}, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	l := newLister(src)
	l.place = "arn:aws:dynamodb:eu-west-1:000000000000:table/"
	cfg := &config.Config{Selections: []config.Table{{Tag: map[string]string{"a": "1"}}}}
	if got, err := l.list(t.Context(), cfg, []string{"untagged"}); err != nil || len(got) != 1 || got[0].Missing ||
		got[0].Unread == "" || got[0].Tags != nil {
		t.Errorf("a table that exists and has no tags: %+v, %v", got, err)
	}
	cfg.Selections = []config.Table{{Source: "*"}}
	got, err := l.list(t.Context(), cfg, []string{"gone", "staying"})
	want := []config.Listed{
		{Name: "untagged"}, {Name: "gone", Logged: true, Missing: true}, {Name: "staying", Logged: true},
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
}
