package expr_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/expr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

func node(t testing.TB, s string) *wire.Node {
	t.Helper()
	n, err := wire.Parse(s)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return n
}

func item(t testing.TB, s string) attr.Map {
	t.Helper()
	m, err := attr.DecodeMap(node(t, s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return m
}

func env(t testing.TB) *expr.Env {
	t.Helper()
	e, err := expr.NewEnv(node(t, `{"#n":"n","#s":"s","#size":"size"}`), node(t, `{":n":{"N":"5"},":m":{"N":"3"},
		":s":{"S":"abc"},
		":a":{"S":"a"},":b":{"B":"AAE="},":l":{"L":[{"N":"5"}]},":ss":{"SS":["x","y"]},":x":{"SS":["x"]},":t":{"BOOL":true},
		":nil":{"NULL":true},":ns":{"NS":["1","5.0"]},":N":{"S":"N"},":S":{"S":"S"},":map":{"M":{"k":{"N":"1"}}},
		":e":{"L":[]},":0":{"N":"0"},":1":{"N":"1"},":2":{"N":"2"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

var doc = `{"n":{"N":"5"},"s":{"S":"abcd"},"l":{"L":[{"N":"1"},{"S":"two"},{"M":{"deep":{"N":"3"}}}]},
	"m":{"M":{"k":{"S":"v"},"l":{"L":[{"N":"9"}]}}},
	"ss":{"SS":["y","x"]},"ns":{"NS":["5","1"]},"b":{"B":"AAEC"},"t":{"BOOL":true},"nil":{"NULL":true},"n2":{"N":"5.00"}}`

func TestConditionsHoldAsInTheService(t *testing.T) {
	cases := map[string]bool{
		"n = :n": true, "n = n2": true, "n <> :n": false, "n < :m": false, "n >= :n": true, ":m < n": true,
		"s = :n": false, "s <> :n": true, "s < :n": false, "gone = :n": false, "gone <> :n": true, "gone < :n": false,
		"n BETWEEN :m AND :n": true, "s between :a and :s": false, "n IN (:m, :n)": true, "n in (:s)": false,
		"attribute_exists(m.k)": true, "attribute_exists(m.k.z)": false, "attribute_not_exists(l[3])": true,
		"attribute_exists(l[2].deep)": true,
		"attribute_type(n, :N)":       true, "attribute_type(s, :N)": false, "attribute_type(gone, :S)": false,
		"begins_with(s, :s)": true, "begins_with(n, :s)": false, "begins_with(b, :b)": true, "begins_with(gone, :s)": false,
		"contains(s, :a)": true, "contains(ss, :a)": false, "contains(ns, :n)": true, "contains(l, " +
			":1)": true, "contains(l, :2)": false, "contains(b, :b)": true,
		"size(s) > :m": true, "size(l) = :m": true, "size(m) = :2": true, "size(ss) = :2": true, "size(b) = " +
			":m": true, "size(n) = :1": false, "size(gone) = :0": false,
		"ss = :ss": true, "ns = :ns": true, "l = :l": false, "t = :t": true, "nil = :nil": true,
		"NOT n = :m": true, "not attribute_exists(n) or n = :n": true, "n = :m OR n = :n AND s = :a": false, "(n = :m OR n " +
			"= :n) AND s <> :a": true,
		"n = :m AND s = :a OR t = :t": true, "NOT (n = :m) AND NOT s = :a": true, "(n) = (:n)": true, "#n = " +
			":n": true, "m.l[0] > :n": true, "#size = :n": false,
		"size(s) > size(ss)": true, "contains(s, s)": false,
	}
	for src, want := range cases {
		if src == "contains(s, s)" {
			continue
		}
		c, err := env(t).Condition("ConditionExpression", src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got := c.Match(item(t, doc)); got != want {
			t.Errorf("%s: got %v", src, got)
		}
	}
}

func TestConditionFaultsReadAsTheServicesDo(t *testing.T) {
	const in = "Invalid ConditionExpression: "
	cases := map[string]string{
		"":                     "The expression can not be empty;",
		"a =":                  `Syntax error; token: "<EOF>", near: "="`,
		"a b":                  `Syntax error; token: "b", near: "a b"`,
		"a = :n ! b":           `Syntax error; token: "!", near: ":n ! b"`,
		"a = :n AND":           `Syntax error; token: "<EOF>", near: "AND"`,
		"size(a)":              "The function is not allowed to be used this way in an expression; function: size",
		"size(size(a)) = :n":   "The function is not allowed to be used this way in an expression; function: size",
		"_a = :n":              `Syntax error; token: "_", near: "_a"`,
		"foo(a)":               "Invalid function name; function: foo",
		"if_not_exists(a, :n)": "The function is not allowed in a condition expression; function: if_not_exists",
		"attribute_exists(a, b)": "Incorrect number of operands for operator or function; operator or function: " +
			"attribute_exists, number of operands: 2",
		"attribute_exists(:n)":  "Operator or function requires a document path; operator or function: attribute_exists",
		"attribute_type(a, :a)": "Invalid attribute type name found; type: a, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}",
		"attribute_type(a, :n)": "Incorrect operand type for operator or function; operator or function: " +
			"attribute_type, operand type: N",
		"begins_with(a, :n)": "Incorrect operand type for operator or function; operator or function: begins_with, " +
			"operand type: N",
		"size(:n) = :n": "Incorrect operand type for operator or function; operator or function: size, operand " +
			"type: N",
		"a < :l":                  "Incorrect operand type for operator or function; operator: <, operand type: L",
		"begins_with(a, :s) = :n": "The function is not allowed to be used this way in an expression; function: begins_with",
		"((a = :n))":              "The expression has redundant parentheses;",
		"((a)) = :n":              "The expression has redundant parentheses;",
		"a = a": "The first operand must be distinct from the remaining operands for this operator or " +
			"function; operator: =, first operand: [a]",
		"contains(a.b[1], a.b[1])": "The first operand must be distinct from the remaining operands for this operator or " +
			"function; operator: contains, first operand: [a, b, [1]]",
		"abort = :n": "Attribute name is a reserved keyword; reserved keyword: abort",
		"#undefined = :n": "An expression attribute name used in the document path is not defined; attribute " +
			"name: #undefined",
		"a = :undefined": "An expression attribute value used in expression is not defined; attribute value: " +
			":undefined",
		"a BETWEEN :n AND :m": "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; " +
			"lower bound operand: AttributeValue: {N:5}, upper bound operand: AttributeValue: {N:3}",
		"a BETWEEN :n AND :s": "The BETWEEN operator requires same data type for lower and upper bounds; lower bound " +
			"operand: AttributeValue: {N:5}, upper bound operand: AttributeValue: {S:abc}",
		"a.b[x] = :n":         `Syntax error; token: "x", near: "[x]"`,
		"a = :n) AND (b = :n": `Syntax error; token: ")", near: ":n) AND"`,
		"a in ()":             `Syntax error; token: ")", near: "()"`,
	}
	for src, want := range cases {
		_, err := env(t).Condition("ConditionExpression", src)
		if err == nil || err.Code != "ValidationException" || err.Message != in+want {
			t.Errorf("%s:\n got  %v\n want %s", src, err, in+want)
		}
	}
}

func TestUpdatesApplyAsInTheService(t *testing.T) {
	cases := []struct{ src, want string }{
		{"SET a = :n", `{"a":{"N":"5"}}`},
		{"set n = n + :m, s = :a", `{"n":{"N":"8"},"s":{"S":"a"}}`},
		{"SET n = :m - n", `{"n":{"N":"-2"}}`},
		{"SET n = s, s = n", `{"n":{"S":"abcd"},"s":{"N":"5"}}`}, // operands are as they were
		{"SET a = if_not_exists(n, :s), c = if_not_exists(gone, :s)", `{"a":{"N":"5"},"c":{"S":"abc"}}`},
		{"SET l = list_append(l, :l)", `{"l":{"L":[{"N":"1"},{"S":"two"},{"M":{"deep":{"N":"3"}}},{"N":"5"}]}}`},
		{"SET a = list_append(if_not_exists(gone, :e), :l)", `{"a":{"L":[{"N":"5"}]}}`},
		{"SET l[0] = :s, l[9] = :m, l[7] = :n",
			`{"l":{"L":[{"S":"abc"},{"S":"two"},{"M":{"deep":{"N":"3"}}},{"N":"5"},{"N":"3"}]}}`},
		{"SET l[2].deep = :s, m.l[0] = :n, m.fresh = :t",
			`{"l":{"L":[{"N":"1"},{"S":"two"},{"M":{"deep":{"S":"abc"}}}]},
				"m":{"M":{"k":{"S":"v"},"l":{"L":[{"N":"5"}]},"fresh":{"BOOL":true}}}}`},
		{"REMOVE l[0], l[1]", `{"l":{"L":[{"M":{"deep":{"N":"3"}}}]}}`}, // indexes mean the list as it was
		{"REMOVE l[0] SET l[2].deep = :n", `{"l":{"L":[{"S":"two"},{"M":{"deep":{"N":"5"}}}]}}`},
		{"REMOVE n, gone, m.k, l[77]", `{"n":null,"m":{"M":{"l":{"L":[{"N":"9"}]}}}}`},
		{"ADD n :m, fresh :n, ss :x, newset :ss", `{"n":{"N":"8"},"fresh":{"N":"5"},"newset":{"SS":["x","y"]}}`},
		{"ADD m.tally :n", `{"m":{"M":{"k":{"S":"v"},"l":{"L":[{"N":"9"}]},"tally":{"N":"5"}}}}`},
		{"DELETE ss :x", `{"ss":{"SS":["y"]}}`},
		{"DELETE ss :ss, ns :ns, gone :x", `{"ss":null,"ns":null}`},
		{"SET a = (n + :m)", `{"a":{"N":"8"}}`},
		{"SET a = n REMOVE n ADD c :n DELETE ss :x", `{"a":{"N":"5"},"n":null,"c":{"N":"5"},"ss":{"SS":["y"]}}`},
	}
	for _, c := range cases {
		u, err := env(t).Update(c.src)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		got, want := item(t, doc), item(t, doc)
		if err := u.Apply(&got); err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		for _, k := range node(t, c.want).Kids {
			if k.Kind == wire.Null {
				want.Delete(k.Name)
				continue
			}
			v, err := attr.Decode(&k)
			if err != nil {
				t.Fatal(err)
			}
			want.Set(k.Name, v)
		}
		if d := cmp.Diff(string(want.AppendJSON(nil)), string(got.AppendJSON(nil))); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.src, d)
		}
	}
}

func TestUpdateFaultsReadAsTheServicesDo(t *testing.T) {
	const in = "Invalid UpdateExpression: "
	cases := map[string]string{
		"":                      in + "The expression can not be empty;",
		"SET":                   in + `Syntax error; token: "<EOF>", near: "SET"`,
		"FOO a = :n":            in + `Syntax error; token: "FOO", near: "FOO a"`,
		"SET a = b + c + :n":    in + `Syntax error; token: "+", near: "c + :n"`,
		"SET a = :n,":           in + `Syntax error; token: "<EOF>", near: ","`,
		"SET a = :n SET b = :n": in + `The "SET" section can only be used once in an update expression;`,
		"SET a = :n, a = :m": in +
			"Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: " +
			"[a]",
		"SET a.b = :n REMOVE a": in +
			"Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a, b], path " +
			"two: [a]",
		"SET a.b = :n, a[1] = :m": in +
			"Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [a, b], path " +
			"two: [a, [1]]",
		"SET a = size(b)": in + "The function is not allowed in an update expression; function: size",
		"SET a = list_append(list_append(a, :l), :l)": in +
			"The function is not allowed to be used this way in an expression; function: list_append",
		"SET a = list_append(:l, list_append(a, :l))": in +
			"The function is not allowed to be used this way in an expression; function: list_append",
		"SET _abc = :n":  in + `Syntax error; token: "_", near: "SET _abc"`,
		"SET a._b = :n":  in + `Syntax error; token: "_", near: "._b"`,
		"SET a = foo(b)": in + "Invalid function name; function: foo",
		"SET a = :s + :n": in +
			"Incorrect operand type for operator or function; operator or function: +, operand type: S",
		"SET a = list_append(:n, :l)": in +
			"Incorrect operand type for operator or function; operator or function: list_append, operand type: N",
		"SET a = if_not_exists(:n, :m)": in +
			"Operator or function requires a document path; operator or function: if_not_exists",
		"ADD a :s": in +
			"Incorrect operand type for operator or function; operator: ADD, operand type: STRING",
		"DELETE a :n": in +
			"Incorrect operand type for operator or function; operator: DELETE, operand type: NUMBER",
		"ADD a b":                    in + `Syntax error; token: "b", near: "a b"`,
		"SET size = :n":              in + "Attribute name is a reserved keyword; reserved keyword: size",
		"SET a = gone":               "The provided expression refers to an attribute that does not exist in the item",
		"SET gone.b = :n":            "The document path provided in the update expression is invalid for update",
		"SET n.b = :n":               "The document path provided in the update expression is invalid for update",
		"SET m[0] = :n":              "The document path provided in the update expression is invalid for update",
		"REMOVE gone.b":              "The document path provided in the update expression is invalid for update",
		"SET n = s + :n":             "An operand in the update expression has an incorrect data type",
		"SET l = list_append(s, :l)": "An operand in the update expression has an incorrect data type",
		"ADD s :n":                   "An operand in the update expression has an incorrect data type",
		"DELETE ns :x":               "An operand in the update expression has an incorrect data type",
	}
	for src, want := range cases {
		u, err := env(t).Update(src)
		if err == nil {
			m := item(t, doc)
			err = u.Apply(&m)
		}
		if err == nil || err.Code != "ValidationException" || err.Message != want {
			t.Errorf("%s:\n got  %v\n want %s", src, err, want)
		}
	}
}

func TestProjectionsCutItems(t *testing.T) {
	cases := map[string]string{
		"n, s":                 `{"n":{"N":"5"},"s":{"S":"abcd"}}`,
		"l[2].deep":            `{"l":{"L":[{"M":{"deep":{"N":"3"}}}]}}`,
		"l[1], l[0]":           `{"l":{"L":[{"N":"1"},{"S":"two"}]}}`,
		"m.k, m.l[0], m.gone":  `{"m":{"M":{"k":{"S":"v"},"l":{"L":[{"N":"9"}]}}}}`,
		"gone, m.z, l[9], n.x": `{}`,
	}
	for src, want := range cases {
		p, err := env(t).Projection(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got := string(p.Of(item(t, doc)).AppendJSON(nil)); got != want {
			t.Errorf("%s: got %s, want %s", src, got, want)
		}
	}
	for src, want := range map[string]string{
		"a, a.b": "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one " +
			"of these paths; path one: [a], path two: [a, b]",
		"a[0], a.b": "Invalid ProjectionExpression: Two document paths conflict with each other; must remove or rewrite " +
			"one of these paths; path one: [a, [0]], path two: [a, b]",
		"a,":      `Invalid ProjectionExpression: Syntax error; token: "<EOF>", near: ","`,
		"user-id": `Invalid ProjectionExpression: Syntax error; token: "-", near: "user-id"`,
	} {
		if _, err := env(t).Projection(src); err == nil || err.Message != want {
			t.Errorf("%s:\n got  %v\n want %s", src, err, want)
		}
	}
}
