package catalog

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestUnfitFoundTableDoesNotKeepACommandFromTheOthers: somebody creates or deletes a table that a
// pattern matches.
func TestUnfitFoundTableDoesNotKeepACommandFromTheOthers(t *testing.T) {
	archives := strings.Replace(mapping, `row: "{p}",`, `row: "{p}", on_ttl_expiry: archive,`, 1)
	good, bad := table("orders-a", "a", mapping, "pk:S"), table("orders-b", "b", archives, "pk:S")
	good.Found, bad.Found = true, true
	c, err := Load(t.Context(), configured(good, bad), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Table("orders-a") == nil || c.Table("orders-b") != nil || len(c.LeftOut) != 1 {
		t.Fatalf("tables %v, left out %v", c.Tables, c.LeftOut)
	}
	if p := c.LeftOut[0].Problems[0]; p.Table != "orders-b" || !strings.HasPrefix(p.What, "orders-b: ") {
		t.Errorf("the problem does not name its table: %+v", p)
	}
	gone := &types.ResourceNotFoundException{}
	if a := c.Table("orders-a"); !c.leaveOutGone(a, gone) || c.Table("orders-a") != nil {
		t.Error("a table that has vanished is still there")
	}

	var refused *ProblemsError
	if _, err := Load(t.Context(), configured(bad), nil); !errors.As(err, &refused) {
		t.Errorf("nothing is left, and the error is %v", err)
	}
	bad.Found = false
	if _, err := Load(t.Context(), configured(good, bad), nil); !errors.As(err, &refused) {
		t.Errorf("a table of the file has errors, and the error is %v", err)
	}
}
