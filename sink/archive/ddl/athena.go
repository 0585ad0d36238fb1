package ddl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tailrace-cdc/replicator/sink/archive/object"
)

// athena returns an external table with projected partitions: nothing has to be crawled or repaired
// as hours appear.
// https://docs.aws.amazon.com/athena/latest/ug/partition-projection-supported-types.html
func athena(at place, table string, o object.Options) (string, error) {
	if at.scheme != "s3" {
		return "", errors.New("the dialect athena needs an archive in s3://")
	}
	var b strings.Builder
	name := notAthena.ReplaceAllString(strings.ToLower(table), "_")
	fmt.Fprintf(&b, "CREATE EXTERNAL TABLE IF NOT EXISTS %s (\n", backticks(name))
	stored := "STORED AS PARQUET\n"
	if o.Format == object.JSONLines {
		stored = "ROW FORMAT SERDE 'org.openx.data.jsonserde.JsonSerDe'\n"
		list(&b, len(athenaLine), func(i int) string { return athenaLine[i] })
	} else {
		columns := object.AllColumns(o.Columns)
		list(&b, len(columns), func(i int) string { return backticks(columns[i].Name) + " " + athenaType(columns[i].Type) })
	}
	b.WriteString(")\nPARTITIONED BY (`tr_class` string, `tr_dt` string, `tr_hr` string)\n" + stored)
	location := at.under("s3")
	fmt.Fprintf(&b, "LOCATION %s\nTBLPROPERTIES (\n", escapedText(location))
	properties := []string{
		"projection.enabled", "true",
		"projection.tr_class.type", "enum", "projection.tr_class.values", strings.Join(classes, ","),
		"projection.tr_dt.type", "date", "projection.tr_dt.format", "yyyy-MM-dd",
		"projection.tr_dt.range", "2020-01-01,NOW+1DAYS",
		"projection.tr_hr.type", "integer", "projection.tr_hr.range", "0,23", "projection.tr_hr.digits", "2",
		"storage.location.template", location + "tr_class=${tr_class}/tr_dt=${tr_dt}/tr_hr=${tr_hr}/",
	}
	list(&b, len(properties)/2, func(i int) string {
		return escapedText(properties[2*i]) + " = " + escapedText(properties[2*i+1])
	})
	b.WriteString(");\n")
	return b.String(), nil
}

// athenaLine are the columns of JSON lines: the members of a CloudEvent.
var athenaLine = []string{
	"`id` string", "`source` string", "`type` string", "`subject` string", "`time` string",
	"`data` struct<`table`:string,`keys`:string,`item`:string,`version`:bigint,`created`:bigint,`expiry`:string>",
}

func athenaType(t object.Type) string {
	switch t {
	case object.Int64:
		return "bigint"
	case object.Double:
		return "double"
	case object.Bool:
		return "boolean"
	case object.TimestampSecond, object.TimestampMilli:
		return "timestamp"
	case object.String, object.JSON:
		return "string"
	}
	p, s, _ := t.Decimal()
	return fmt.Sprintf("decimal(%d,%d)", p, s)
}
