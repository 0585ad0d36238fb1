package dynamo_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// TestStreamOfConcurrentWritersPlaysBackToTheTable writes few items from many clients
// at once: each record's old image must be the new image of the item's record before,
// and the last images must be the table.
func TestStreamOfConcurrentWritersPlaysBackToTheTable(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	r.do("UpdateTimeToLive", `{'TableName':'ttt','TimeToLiveSpecification':{'AttributeName':'ttl','Enabled':true}}`)
	var g errgroup.Group
	for w := range 8 {
		rnd := rand.New(rand.NewPCG(1, uint64(w)))
		g.Go(func() error {
			for range 60 {
				op, body := randomWrite(rnd)
				switch a := r.raw(op, quotes(body)); a.Code {
				case "", "ConditionalCheckFailedException", "TransactionCanceledException":
				default:
					return fmt.Errorf("%s %s: %s: %s", op, body, a.Code, a.Message)
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		for range 20 {
			r.ExpireNow(time.Now())
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	play := map[string]string{}
	for _, rec := range r.records("ttt") {
		key, d := string(rec.Dynamodb.Keys), rec.Dynamodb
		if play[key] != string(d.OldImage) {
			t.Fatalf("%s: old image %s after %s", key, d.OldImage, play[key])
		}
		play[key] = string(d.NewImage)
	}
	for key, image := range play {
		var k struct{ P struct{ S string } }
		_ = json.Unmarshal([]byte(key), &k) // a wrong key shows below
		if image == "" {
			image = "null"
		}
		if got := r.item("ttt", k.P.S); got != image {
			t.Errorf("%s: table has %s, stream ends with %s", key, got, image)
		}
	}
}

func randomWrite(rnd *rand.Rand) (op, body string) {
	key := func() string { return fmt.Sprintf(`{'p':{'S':'k%d'}}`, rnd.IntN(5)) }
	item := func() string {
		ttl := ""
		if rnd.IntN(4) == 0 {
			ttl = fmt.Sprintf(`,'ttl':{'N':'%d'}`, time.Now().Unix()-10)
		}
		return fmt.Sprintf(`{'p':{'S':'k%d'},'n':{'N':'%d'}%s}`, rnd.IntN(5), rnd.IntN(3), ttl)
	}
	add := func() string {
		return `'TableName':'ttt','Key':` + key() +
			`,'UpdateExpression':'ADD n :1','ExpressionAttributeValues':{':1':{'N':'1'}}`
	}
	switch rnd.IntN(5) {
	case 0:
		return "PutItem", `{'TableName':'ttt','Item':` + item() + `}`
	case 1:
		return "DeleteItem", `{'TableName':'ttt','Key':` + key() + `}`
	case 2:
		return "UpdateItem", `{` + add() + `}`
	case 3:
		return "PutItem", `{'TableName':'ttt','Item':` + item() +
			`,'ConditionExpression':'n < :1','ExpressionAttributeValues':{':1':{'N':'2'}}}`
	}
	a, b := add(), `'TableName':'ttt','Item':`+item()
	if strings.Contains(b, a[strings.Index(a, "'k"):][:4]) {
		return "UpdateItem", `{` + a + `}`
	}
	return "TransactWriteItems", `{'TransactItems':[{'Update':{` + a + `}},{'Put':{` + b + `}}]}`
}
