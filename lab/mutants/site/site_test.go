package site

import (
	"slices"
	"testing"
)

const program = `/* a < b in a comment */
#define LIMIT 7
static __always_inline int look(struct phv *phv, __u32 n)
{
	__u32 *cell = find(phv, n * 2);

	if (!cell || n < 3)
		return -1;
	cell[1] = n - 1;
	for (int i = 0; i < n; i++)
		count(cell);
	count(cell);
	return *cell >> 4;
}
`

func changes(list []Site) []string {
	var texts []string
	for _, s := range list {
		texts = append(texts, s.Operator+" "+s.Old+" → "+s.New)
	}
	return texts
}

// What can be changed in C is found, and pointers, comments, signs and the preprocessor are left alone.
func TestC(t *testing.T) {
	got := changes(C("x.c", []byte(program)))
	want := []string{"arithmetic * → /", "constant 2 → 3", "connective || → &&", "boundary < → <=", "constant 3 → 4", "constant 1 → 2",
		"statement cell[1] = n - 1; → ;", "constant 1 → 2", "arithmetic - → +", "constant 1 → 2", "constant 0 → 1", "boundary < → <=", "assignment ++ → --", "statement count(cell); → ;", "shift >> → <<", "constant 4 → 5"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q\nwant %q", got, want)
	}
}

const source = `package x

func f(a, b int, s string) (int, error) {
	if a < b && s != "" {
		b = max(a, 2)
	}
	g(s + "text")
	_ = b
	return b, fmt.Errorf("%d of %d", a+1, b)
}
`

func TestGo(t *testing.T) {
	list, err := Go("x.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	got := changes(list)
	want := []string{`condition a < b && s != "" → !(a < b && s != "")`, "connective && → ||", "boundary < → <=", "comparison != → ==",
		"statement b = max(a, 2) → _ = max(a, 2)", "extreme max → min", "constant 2 → 3", `statement g(s + "text") → `}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q\nwant %q", got, want)
	}
}

// A change is named by its line, wherever that stands.
func TestKey(t *testing.T) {
	list := C("x.c", []byte(program))
	moved := C("x.c", []byte("\n\n"+program))
	for i := range list {
		if a, b := list[i].Key([]byte(program)), moved[i].Key([]byte("\n\n"+program)); a != b {
			t.Errorf("%s is %s elsewhere", a, b)
		}
		if mutant := string(list[i].Apply([]byte(program))); mutant == program {
			t.Errorf("%s changes nothing", list[i])
		}
	}
}
