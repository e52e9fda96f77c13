package adminview

// LostService is a service that something names and that is not there.
type LostService struct {
	// Text says what is missing.
	Text  string
	Links []LostLink
}

// LostLink leads to where that is mended.
type LostLink struct{ Label, Href string }
