package layout

// ErrorModel is what an error page says.
type ErrorModel struct {
	// Headline is short: "Not found".
	Headline string
	// Message says what happened, Remedy what to try.
	Message, Remedy string
	// Back is the label of the button that leads to BackHref.
	Back, BackHref string
	RequestID      string
}

func nonEmpty(texts ...string) []string {
	var kept []string
	for _, t := range texts {
		if t != "" {
			kept = append(kept, t)
		}
	}
	return kept
}

func pressed(on bool) string {
	if on {
		return "true"
	}
	return "false"
}
