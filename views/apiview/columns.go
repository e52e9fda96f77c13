package apiview

import "loom/views/ui"

func columns(places bool) []ui.Column {
	if places {
		return []ui.Column{{Label: "Name"}, {Label: "In"}, {Label: "Type"}, {Label: "Meaning"}}
	}
	return []ui.Column{{Label: "Name"}, {Label: "Type"}, {Label: "Meaning"}}
}

// facts are what goes in and what comes out.
func (o Operation) facts() []ui.Def {
	var defs []ui.Def
	if o.Body != nil {
		defs = append(defs, ui.Def{Term: "Body", Value: body(o)})
	}
	if o.Answer == nil && len(o.Media) == 0 {
		return append(defs, ui.Def{Term: "Answer", Text: "nothing: an empty body"})
	}
	return append(defs, ui.Def{Term: "Answer", Value: answer(o)})
}
