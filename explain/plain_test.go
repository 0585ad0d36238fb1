package explain

import "testing"

// TestPlainItemIsTyped: as a person writes one, with a number of 38 digits.
func TestPlainItemIsTyped(t *testing.T) {
	got, err := typedItem([]byte(`{"pk":"hats","n":12345678901234567890123456789012345678,"t":true,"z":null,"l":[1,"a"],` +
		`"m":{"x":"y"}}`))
	const want = `{"l":{"L":[{"N":"1"},{"S":"a"}]},"m":{"M":{"x":{"S":"y"}}},` +
		`"n":{"N":"12345678901234567890123456789012345678"},"pk":{"S":"hats"},"t":{"BOOL":true},"z":{"NULL":true}}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range []string{"", "[]", "null", `{"pk":`} {
		if got, err := typedItem([]byte(bad)); err == nil {
			t.Errorf("%q is %s", bad, got)
		}
	}
}
