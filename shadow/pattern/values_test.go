package pattern

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/transform/access"
)

// secret draws a value of a request: it has a mark that no name has, behind what rules look for.
func secret(t *rapid.T, secrets *[]string) map[string]any {
	text := rapid.StringMatching(`Zq[a-z0-9]{4,12}`).Draw(t, "secret")
	number := rapid.StringMatching(`7[0-9]{9}`).Draw(t, "number")
	raw := base64.StdEncoding.EncodeToString([]byte(text))
	*secrets = append(*secrets, text, number, raw)
	prefix := rapid.SampledFrom([]string{"", "USER#", "ORDER#", "ORDER#a", "GROUP#"}).Draw(t, "prefix")
	return rapid.SampledFrom([]map[string]any{{"S": prefix + text}, {"S": prefix + text}, {"N": number}, {"B": raw},
		{"BOOL": true}, {"SS": []string{text}}, {"M": map[string]any{text: map[string]any{"S": text}}}}).Draw(t, "value")
}

// drawRequest draws a request of any operation, valid or nearly so, and the values in it.
func drawRequest(t *rapid.T) (operation string, body []byte, secrets []string) {
	value := func() map[string]any { return secret(t, &secrets) }
	key := func() map[string]any { return map[string]any{"pk": value(), "sk": value()} }
	maybe := func(m map[string]any, name string, v any) {
		if rapid.Bool().Draw(t, name) {
			m[name] = v
		}
	}
	one := func() map[string]any {
		m := map[string]any{"Key": key()}
		m["TableName"] = rapid.SampledFrom([]string{"Shop", "Elsewhere", "a b"}).Draw(t, "table")
		maybe(m, "Item", key())
		maybe(m, "IndexName", "by_state")
		maybe(m, "ExclusiveStartKey", key())
		maybe(m, "Expected", map[string]any{"a": map[string]any{"Value": value()}})
		maybe(m, "AttributeUpdates", map[string]any{"a": map[string]any{"Action": "ADD", "Value": value()}})
		maybe(m, "UpdateExpression", "SET a = :a ADD b :b")
		maybe(m, "ConditionExpression", "a = :a")
		maybe(m, "KeyConditionExpression", rapid.SampledFrom([]string{"pk = :a", "pk = :a and begins_with(sk, :b)",
			"pk = :a and sk between :b and :c", "pk = :a and sk > :b", ":a = #p", "pk = :a or sk = :b",
			"pk = :d"}).Draw(t, "condition"))
		maybe(m, "ExpressionAttributeNames", map[string]any{"#p": "pk"})
		m["ExpressionAttributeValues"] = map[string]any{":a": value(), ":b": value(), ":c": value()}
		maybe(m, "KeyConditions", map[string]any{
			"pk": map[string]any{"ComparisonOperator": "EQ", "AttributeValueList": []any{value()}},
			"sk": map[string]any{"AttributeValueList": []any{value()},
				"ComparisonOperator": rapid.SampledFrom([]string{"GT", "BEGINS_WITH", "NE", "?"}).Draw(t, "op")}})
		return m
	}
	operation = rapid.SampledFrom([]string{"GetItem", "Query", "Query", "Query", "Scan", "BatchGetItem",
		"TransactGetItems", "PutItem", "DeleteItem", "UpdateItem", "BatchWriteItem", "TransactWriteItems", "ExecuteStatement",
		"DescribeTable"}).Draw(t, "operation")
	m := one()
	switch operation {
	case "BatchGetItem":
		m = map[string]any{"RequestItems": map[string]any{"Shop": map[string]any{"Keys": []any{key(), key()}}}}
	case "BatchWriteItem":
		m = map[string]any{"RequestItems": map[string]any{"Shop": []any{
			map[string]any{"PutRequest": map[string]any{"Item": key()}},
			map[string]any{"DeleteRequest": map[string]any{"Key": key()}}}}}
	case "TransactGetItems":
		m = map[string]any{"TransactItems": []any{map[string]any{"Get": one()}, map[string]any{"Get": one()}}}
	case "TransactWriteItems":
		m = map[string]any{"TransactItems": []any{map[string]any{"Put": one()}, map[string]any{"Update": one()}}}
	case "ExecuteStatement":
		m = map[string]any{"Statement": fmt.Sprint("SELECT * FROM Shop WHERE pk = ", value())}
	}
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return operation, body, secrets
}

// shown returns all that is shown of a request: text and JSON of its patterns, verdicts, a
// snapshot.
func shown(t tb, r *Reader, operation string, body []byte) string {
	t.Helper()
	got := r.Of(operation, body)
	c := NewCollector()
	c.Add(got, Answer{})
	all := []any{got, c.Snapshot()}
	var text strings.Builder
	for _, u := range got.Uses {
		text.WriteString(u.Pattern.Text() + "\n")
		if v := r.Grade(u.Pattern); v != nil {
			all = append(all, v)
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s%s%+v", text.String(), raw, got)
}

func TestNoValueOfARequestIsShown(t *testing.T) {
	table := mapped(t, "Shop", single, schemaOf("pk sk"), indexOf("by_state: state, created:N"))
	known, parsed, skipped := NewReader(table), 0, 0
	rapid.Check(t, func(t *rapid.T) {
		operation, body, secrets := drawRequest(t)
		for _, r := range []*Reader{known, new(Reader)} {
			out := shown(t, r, operation, body)
			for _, s := range secrets {
				if strings.Contains(out, s) {
					t.Fatalf("%s %s\nshows %q:\n%s", operation, body, s, out)
				}
			}
			if r.Of(operation, body).Skipped == "" {
				parsed++
			} else {
				skipped++
			}
		}
	})
	if parsed < 20 || skipped < 20 {
		t.Errorf("%d requests had patterns and %d had none: the test draws too few of one kind", parsed, skipped)
	}
}

func TestMalformedBodiesDoNotPanic(t *testing.T) {
	table := mapped(t, "Shop", single, schemaOf("pk sk"), indexOf("by_state: state, created:N"))
	r := NewReader(table)
	rapid.Check(t, func(t *rapid.T) {
		operation, body, _ := drawRequest(t)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, len(body)-1).Draw(t, "at")
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				body[at] = rapid.SampledFrom([]byte(`{}[]":,0n\ `)).Draw(t, "byte")
			case 1:
				body = append(body[:at:at], body[min(at+rapid.IntRange(1, 20).Draw(t, "cut"), len(body)):]...)
			case 2:
				tokens := []string{`null`, `[]`, `{}`, `""`, `1`, `{"S":null}`, `[null]`, `{"":{}}`}
				token := rapid.SampledFrom(tokens).Draw(t, "token")
				if end := strings.IndexAny(string(body[at:]), "{[\""); end >= 0 {
					at += end
				}
				body = append(append(body[:at:at], token...), body[at:]...)
			default:
				body = body[:at]
			}
			if len(body) == 0 {
				body = []byte(`{`)
			}
		}
		shown(t, r, operation, body)
	})
}

// FuzzOf reads arbitrary bodies.
func FuzzOf(f *testing.F) {
	f.Add("Query", []byte(`{"TableName":"Shop","KeyConditionExpression":"pk=:p",
		"ExpressionAttributeValues":{":p":{"S":"a"}}}`))
	f.Add("GetItem", []byte(`{"TableName":"Shop","Key":{"pk":{"S":"a"},"sk":{"B":"AA=="}}}`))
	f.Add("TransactWriteItems", []byte(`{"TransactItems":[{"Put":null},{"Update":{"TableName":"Shop"}}]}`))
	f.Fuzz(func(_ *testing.T, operation string, body []byte) { Of(operation, body) })
}

// TestRulesOfAKeyHoldTheRuleOfTheItem: whatever item meets a key condition, its rule is among those
// of the pattern.
func TestRulesOfAKeyHoldTheRuleOfTheItem(t *testing.T) {
	all := models(t)
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(all).Draw(t, "model")
		checkRules(t, m)
	})
}

// words are what keys of the models are made of.
var words = rapid.SampledFrom([]string{"USER#", "ORDER#", "REPO#", "STAR#", "ISSUE#", "TASKS#", "1", "12", "#", "a",
	"b", "|", "v0_", "v1_", "Video", "VideoComment#", "DEAL#", "Invoice-", "Payment-", ".", "d#", "User:",
	"meta", "PROFILE", "T"})

// checkRules draws an item and a condition that it meets.
func checkRules(t *rapid.T, m model) {
	draw := func(name string, typ byte) map[string]any {
		if typ == 'N' {
			return map[string]any{"N": rapid.SampledFrom([]string{"1", "12", "105", "-3", "2.5"}).Draw(t, name)}
		}
		return map[string]any{"S": strings.Join(rapid.SliceOfN(words, 1, 5).Draw(t, name), "")}
	}
	keys, _ := m.table.keys("")
	item := map[string]any{}
	body := map[string]any{"TableName": m.name}
	values := map[string]any{}
	condition := ""
	for i, k := range keys {
		v := draw(k.Name, k.Type)
		item[k.Name] = v
		text, isText := v["S"].(string)
		n := string(rune('a' + i))
		values[":"+n] = v
		body["ExpressionAttributeNames"] = map[string]any{"#a": keys[0].Name}
		ops := []string{access.Equal, access.BeginsWith, access.LessEqual, access.MoreEqual, access.Between, ""}
		op := rapid.SampledFrom(ops).Draw(t, "op")
		switch {
		case i == 0:
			condition = "#a = :a"
			continue
		case op == "":
			delete(values, ":b")
			continue
		case op == access.BeginsWith && isText:
			values[":b"] = map[string]any{"S": text[:rapid.IntRange(1, len(text)).Draw(t, "length")]}
			condition += " and begins_with(#b, :b)"
		case op == access.LessEqual && isText:
			values[":b"] = map[string]any{"S": text + "x"}
			condition += " and #b < :b"
		case op == access.MoreEqual && isText:
			values[":b"] = map[string]any{"S": text[:rapid.IntRange(1, len(text)).Draw(t, "length")]}
			condition += " and #b >= :b"
		case op == access.Between && isText:
			values[":b"] = map[string]any{"S": text[:rapid.IntRange(1, len(text)).Draw(t, "length")]}
			values[":c"] = map[string]any{"S": text + rapid.SampledFrom([]string{"", "a", "~"}).Draw(t, "end")}
			condition += " and #b between :b and :c"
		default:
			condition += " and #b = :b"
		}
		body["ExpressionAttributeNames"] = map[string]any{"#a": keys[0].Name, "#b": k.Name}
	}
	body["KeyConditionExpression"], body["ExpressionAttributeValues"] = condition, values
	raw, _ := json.Marshal(body)
	got := NewReader(m.table).Of("Query", raw)
	if got.Skipped != "" {
		t.Fatalf("%s skipped: %s", raw, got.Skipped)
	}
	rule := ruleOf(t, m, item)
	if rule == "" {
		return
	}
	for _, b := range got.Uses[0].Pattern.Rules {
		if b.Rule == rule {
			return
		}
	}
	t.Fatalf("%s: item %v is of rule %s, the pattern has %s", m.name, item, rule, got.Uses[0].Pattern.Rule())
}

// ruleOf returns the rule that takes an item; "" if none does.
func ruleOf(t *rapid.T, m model, item map[string]any) string {
	raw, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	img, err := decoder().Image(raw)
	if err != nil {
		t.Fatal(err)
	}
	return m.table.Program.Explain(img).Rule
}
