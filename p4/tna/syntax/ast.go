package syntax

// Expr is an expression, or a set of values where keys are matched.
type Expr interface{ At() Pos }

// Stmt is a statement.
type Stmt interface{ At() Pos }

// Decl is a declaration.
type Decl interface{ At() Pos }

type (
	// Name refers to something that was declared.
	Name struct {
		Pos
		ID string
	}
	// Number is a literal; Width 0: an integer without width.
	Number struct {
		Pos
		Value  uint64
		Width  int
		Signed bool
	}
	// Bool is true or false.
	Bool struct {
		Pos
		Value bool
	}
	// Any is `_`, or `default`.
	Any struct{ Pos }
	// Field is X.Name: a field, a member of an enum, a method.
	Field struct {
		Pos
		X    Expr
		Name string
	}
	// Index is X[I].
	Index struct {
		Pos
		X, I Expr
	}
	// Slice is X[Hi:Lo].
	Slice struct {
		Pos
		X, Hi, Lo Expr
	}
	// Unary is - ~ !.
	Unary struct {
		Pos
		Op string
		X  Expr
	}
	// Binary has the operator as it is written; &&& and .. make sets.
	Binary struct {
		Pos
		Op   string
		X, Y Expr
	}
	// Choice is C ? X : Y.
	Choice struct {
		Pos
		C, X, Y Expr
	}
	// Cast is (Type)X.
	Cast struct {
		Pos
		Type *Type
		X    Expr
	}
	// Call is Fn<Types>(Args).
	Call struct {
		Pos
		Fn    Expr
		Types []*Type
		Args  []Expr
	}
	// List is { ... }, or ( ... ) where keys are matched.
	List struct {
		Pos
		Elems []Expr
	}
)

// Type is a type as it is written.
type Type struct {
	Pos
	Name  string  // bit, int, bool, void, or of a declaration
	Width Expr    // of bit and int
	Args  []*Type // of an extern
	Stack Expr    // not nil: a stack of so many
}

type (
	// Assign is L = R.
	Assign struct {
		Pos
		L, R Expr
	}
	// Do is a call as a statement.
	Do struct {
		Pos
		Call *Call
	}
	// If has an Else or nil.
	If struct {
		Pos
		Cond Expr
		Then *Block
		Else Stmt
	}
	// Block is { ... }.
	Block struct {
		Pos
		Stmts []Stmt
	}
	// Switch is over a table's action_run.
	Switch struct {
		Pos
		X     Expr
		Cases []*Labelled
	}
	// Labelled is a block with one label or more; the label of `default` is nil.
	Labelled struct {
		Pos
		Labels []*Name
		Body   *Block
	}
)

// Param is a parameter of a control, parser, action or method. Dir is in, out, inout, or empty.
type Param struct {
	Pos
	Dir  string
	Type *Type
	Name string
}

type (
	// Const is a constant.
	Const struct {
		Pos
		Type  *Type
		Name  string
		Value Expr
	}
	// Typedef names a type.
	Typedef struct {
		Pos
		Type *Type
		Name string
	}
	// Struct is a struct or a header.
	Struct struct {
		Pos
		Name   string
		Header bool
		Fields []*Param
	}
	// Enum has members, with values when they have a type.
	Enum struct {
		Pos
		Name    string
		Type    *Type
		Members []string
		Values  []Expr
	}
	// Var is a variable; Init may be nil.
	Var struct {
		Pos
		Type *Type
		Name string
		Init Expr
	}
	// Instance is an object of an extern, control or parser. Methods are those that a RegisterAction is given.
	Instance struct {
		Pos
		Type    *Type
		Args    []Expr
		Name    string
		Methods []*Action
	}
	// Action is an action, or the method of an Instance.
	Action struct {
		Pos
		Name   string
		Params []*Param
		Body   *Block
	}
	// Key is one part of a table's key.
	Key struct {
		Pos
		X    Expr
		Kind string
	}
	// Entry is a row of a table.
	Entry struct {
		Pos
		Keys   []Expr
		Action *Call
	}
	// Table is a table. ConstEntries: the control plane cannot change them.
	Table struct {
		Pos
		Name         string
		Keys         []*Key
		Actions      []*Name
		Default      *Call
		Entries      []*Entry
		ConstEntries bool
		ConstDefault bool
		Size         Expr
		Counters     *Name
	}
	// Control is a control, or a deparser.
	Control struct {
		Pos
		Name     string
		Params   []*Param
		Ctor     []*Param
		Locals   []Decl
		Apply    *Block
		NoShare  []string // arguments of @pa_no_overlay
		IsParser bool
		States   []*State
	}
	// State of a parser.
	State struct {
		Pos
		Name  string
		Stmts []Stmt
		Next  *Transition
	}
	// Transition is to one state, or a select.
	Transition struct {
		Pos
		To    string
		Keys  []Expr
		Cases []*Case
	}
	// Case of a select.
	Case struct {
		Pos
		Keys []Expr
		To   string
	}
)

// Program is a whole program, in the order of its text.
type Program struct {
	Decls []Decl
}
