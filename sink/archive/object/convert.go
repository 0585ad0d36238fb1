package object

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/tailrace-cdc/replicator/change"
)

// converter makes the values of configured columns. It decodes the attributes that they name and
// skips the others.
type converter struct {
	columns []Column
	scales  []decimal
	roots   map[string]bool
	decoder change.Decoder
	texts   [][]byte // of each column: where its value is made
	misfits []byte
}

func newConverter(columns []Column) *converter {
	c := &converter{columns: columns, roots: map[string]bool{}, texts: make([][]byte, len(columns))}
	for _, col := range columns {
		c.roots[col.Path[0]] = true
		precision, scale, _ := col.Type.Decimal()
		c.scales = append(c.scales, decimal{precision, scale, decimalWidth(precision)})
	}
	return c
}

// decimal is the type of a decimal column, and the width of its values in bytes.
type decimal struct{ precision, scale, width int }

// convert sets the value of each column, and returns the JSON list of those that do not fit, nil
// where all do. All is valid until the next call.
func (c *converter) convert(item []byte, values []parquet.Value) (misfits []byte, err error) {
	c.decoder.Reset()
	img, err := c.decoder.PartialImage(item, func(name string) bool { return c.roots[name] })
	if err != nil {
		return nil, err
	}
	c.misfits = c.misfits[:0]
	for i, col := range c.columns {
		values[i] = parquet.NullValue()
		v := find(img, col.Path)
		if v == nil || v.Kind == change.KindNull {
			continue
		}
		x, ok := c.value(i, v)
		if ok {
			values[i] = x
			continue
		}
		if len(c.misfits) == 0 {
			c.misfits = append(c.misfits, '[')
		} else {
			c.misfits = append(c.misfits, ',')
		}
		c.misfits = change.AppendString(c.misfits, col.Name)
	}
	if len(c.misfits) == 0 {
		return nil, nil
	}
	c.misfits = append(c.misfits, ']')
	return c.misfits, nil
}

// find returns the value at a path, nil where there is none.
func find(img change.Image, path []string) *change.Value {
	v := img.Get(path[0])
	for _, name := range path[1:] {
		if v == nil || v.Kind != change.KindMap {
			return nil
		}
		v = change.Image(v.M).Get(name)
	}
	return v
}

// value returns the value of column i; false where it does not fit.
func (c *converter) value(i int, v *change.Value) (parquet.Value, bool) {
	switch t := c.columns[i].Type; {
	case t == JSON:
		c.texts[i] = appendPlain(c.texts[i][:0], *v)
		return parquet.ByteArrayValue(c.texts[i]), true
	case t == Bool:
		return parquet.BooleanValue(v.Bool), v.Kind == change.KindBool
	case t == String && v.Kind == change.KindString:
		return parquet.ByteArrayValue(bytesOf(v.S)), true
	case v.Kind != change.KindNumber:
		return parquet.Value{}, false
	}
	n, err := change.CanonicalNumber(v.S)
	if err != nil {
		return parquet.Value{}, false
	}
	return c.number(i, n)
}

// number returns a canonical number as the value of column i; false where it does not fit.
func (c *converter) number(i int, n string) (parquet.Value, bool) {
	switch t := c.columns[i].Type; t {
	case String:
		return parquet.ByteArrayValue(bytesOf(n)), true
	case Double:
		x, err := strconv.ParseFloat(n, 64)
		return parquet.DoubleValue(x), err == nil
	case Int64:
		x, err := strconv.ParseInt(n, 10, 64)
		return parquet.Int64Value(x), err == nil
	case TimestampSecond:
		x, err := strconv.ParseInt(n, 10, 64)
		return parquet.Int64Value(x * 1000), err == nil && x >= minTime/1000 && x <= maxTime/1000
	case TimestampMilli:
		x, err := strconv.ParseInt(n, 10, 64)
		return parquet.Int64Value(x), err == nil && x >= minTime && x <= maxTime
	default:
		d := c.scales[i]
		if c.texts[i] == nil {
			c.texts[i] = make([]byte, d.width)
		}
		ok := d.put(c.texts[i], n)
		return parquet.FixedLenByteArrayValue(c.texts[i]), ok
	}
}

// The years 1 to 9999, in ms: what all readers can show.
const (
	minTime = -62135596800000
	maxTime = 253402300799999
)

// decimalWidth returns how many bytes hold the decimals of a precision: as few as possible, as Hive
// expects.
func decimalWidth(precision int) int {
	most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	return most.BitLen()/8 + 1
}

// put writes a canonical number times 10^scale as a two's complement. It is false where digits
// would be lost.
func (d decimal) put(dst []byte, n string) bool {
	digits, negative := strings.CutPrefix(n, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole == "0" {
		whole = ""
	}
	// A canonical number has an exponent only beyond 40 digits.
	if strings.Contains(n, "E") || len(fraction) > d.scale || len(whole) > d.precision-d.scale {
		return false
	}
	if len(whole)+d.scale <= 18 {
		d.putSmall(dst, whole, fraction, negative)
		return true
	}
	x, ok := new(big.Int).SetString("0"+whole+fraction+strings.Repeat("0", d.scale-len(fraction)), 10)
	if !ok {
		return false
	}
	if negative {
		x.Sub(new(big.Int).Lsh(big.NewInt(1), uint(8*len(dst))), x)
	}
	x.FillBytes(dst)
	return true
}

// putSmall is put for what fits into 64 bits, as most numbers do.
func (d decimal) putSmall(dst []byte, whole, fraction string, negative bool) {
	var x int64
	for _, part := range []string{whole, fraction} {
		for i := range len(part) {
			x = 10*x + int64(part[i]-'0')
		}
	}
	for range d.scale - len(fraction) {
		x *= 10
	}
	if negative {
		x = -x
	}
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte(x)
		x >>= 8
	}
}

// appendPlain appends a value as plain JSON, without DynamoDB's types.
func appendPlain(dst []byte, v change.Value) []byte {
	switch v.Kind {
	case change.KindNull:
		return append(dst, "null"...)
	case change.KindBool:
		return strconv.AppendBool(dst, v.Bool)
	case change.KindNumber:
		if n, err := change.CanonicalNumber(v.S); err == nil {
			return append(dst, n...)
		}
	case change.KindMap:
		dst = append(dst, '{')
		for i, m := range v.M {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(change.AppendString(dst, m.Name), ':')
			dst = appendPlain(dst, m.Value)
		}
		return append(dst, '}')
	case change.KindList, change.KindStringSet, change.KindNumberSet, change.KindBinarySet:
		dst = append(dst, '[')
		for i, e := range v.L {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendPlain(dst, e)
		}
		return append(dst, ']')
	}
	return change.AppendString(dst, v.S)
}
