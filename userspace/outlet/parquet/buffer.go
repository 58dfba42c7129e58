package parquet

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// buffer are the rows of a dataset that are not written yet. Its columns are those of all rows, so that they are known when the file is written.
type buffer struct {
	columns []cell // name and kind
	at      map[string]int
	rows    [][]any // by column; shorter ones lack the last ones
}

func (b *buffer) add(r row) (cells int) {
	if b.at == nil {
		b.at = map[string]int{}
	}
	list := make([]any, len(b.columns), len(b.columns)+len(r.cells))
	for _, c := range r.cells {
		i, known := b.at[c.name]
		if !known {
			i = len(b.columns)
			b.at[c.name] = i
			b.columns = append(b.columns, cell{name: c.name})
			list = append(list, nil)
		}
		b.columns[i].kind = both(b.columns[i].kind, c.kind)
		list[i] = c.value
	}
	b.rows = append(b.rows, list)
	return len(list)
}

// write writes all rows as one file. A column without a single value is left out.
func (b *buffer) write(w io.Writer) error {
	var used []int
	group, order := parquet.Group{}, []string{}
	for i, c := range b.columns {
		if c.kind != unknown {
			used = append(used, i)
			group[c.name] = parquet.Optional(c.kind.node())
			order = append(order, c.name)
		}
	}
	out := parquet.NewWriter(w, parquet.NewSchema("window", ordered{group, order}), parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("xdpmon", "", ""))
	line := make(parquet.Row, len(used))
	for _, r := range b.rows {
		for n, i := range used {
			var v any
			if i < len(r) {
				v = r[i]
			}
			line[n] = b.columns[i].kind.value(v, n)
		}
		if _, err := out.WriteRows([]parquet.Row{line}); err != nil {
			return fmt.Errorf("encode rows: %w", err)
		}
	}
	return out.Close()
}

// ordered is a group whose columns stay in their order.
type ordered struct {
	parquet.Group
	names []string
}

// Fields implements parquet.Node.
func (o ordered) Fields() []parquet.Field {
	fields := o.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int { return slices.Index(o.names, a.Name()) - slices.Index(o.names, b.Name()) })
	return fields
}

func (k kind) node() parquet.Node {
	switch k {
	case truth:
		return parquet.Leaf(parquet.BooleanType)
	case moment:
		return parquet.Timestamp(parquet.Microsecond) // Spark reads no nanoseconds
	case integer:
		return parquet.Int(64)
	case real:
		return parquet.Leaf(parquet.DoubleType)
	}
	return parquet.String()
}

// value is a value of a column of this type.
func (k kind) value(v any, column int) parquet.Value {
	if v == nil {
		return parquet.NullValue().Level(0, 0, column)
	}
	return k.present(v).Level(0, 1, column)
}

func (k kind) present(v any) parquet.Value {
	switch k {
	case truth:
		return parquet.BooleanValue(v.(bool))
	case moment:
		return parquet.Int64Value(v.(time.Time).UnixMicro())
	case integer:
		return parquet.Int64Value(v.(int64))
	case real:
		if n, ok := v.(int64); ok {
			return parquet.DoubleValue(float64(n))
		}
		return parquet.DoubleValue(v.(float64))
	}
	if s, ok := v.(string); ok {
		return parquet.ByteArrayValue([]byte(s))
	}
	return parquet.ByteArrayValue([]byte(fmt.Sprint(v)))
}
