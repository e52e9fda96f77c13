// Package apiview is the readable page of the REST API, made from its OpenAPI
// document: an overview, and a page for each chapter.
//
// It knows no route of the API and repeats nothing of it: everything shown comes
// from the document, so the page cannot disagree with what is served. The models
// are flat; who reads the document fills them.
package apiview

// IndexModel is the overview.
type IndexModel struct {
	// Server is the address that examples use, such as "http://127.0.0.1:8080".
	Server   string
	Document string // URL of the document itself
	Chapters []Chapter
}

// Chapter is a group of operations in the overview.
type Chapter struct {
	Name, Help, Href string
	Operations       []Line
}

// Line is an operation in one line.
type Line struct{ Method, Path, Summary, Href string }

// ChapterModel is the page of a chapter.
type ChapterModel struct {
	Name, Help string
	Operations []Operation
	// Shapes are the objects that bodies and answers of this chapter are made of.
	Shapes []Shape
}

// Operation is one call. ID is the id of its element.
type Operation struct {
	ID, Method, Path, Summary string
	// Open calls need no identity.
	Open   bool
	Params []Row
	// Body and Answer are nil for nothing; BodyOptional says that it may be left out.
	Body, Answer *Type
	BodyOptional bool
	// Media are the content types of an answer that is not only JSON.
	Media []string
	Curl  string
}

// Row is a parameter or a member of an object.
type Row struct {
	Name     string
	Place    string // "path", "query", "header"; empty for members
	Type     Type
	Required bool
	Help     string
}

// Type is a type in words; Ref is the shape that it ends in, "" for none: "array
// of " and "Node".
type Type struct{ Words, Ref string }

// Shape is an object with its members, nested ones under dotted names.
type Shape struct {
	Name string
	Rows []Row
}

// ShapeID is the id of a shape's element.
func ShapeID(name string) string { return "shape-" + name }
