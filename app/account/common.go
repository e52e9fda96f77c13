package account

import (
	"bytes"
	"compress/gzip"
	_ "embed" // for the list
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// packedCommon holds the 10,000 commonest passwords, one a line, the commonest first:
// the first 10,000 different ones, in lower case, of passwords.json in the npm package
// @zxcvbn-ts/language-common 4.1.3, under the MIT license:
//
// Copyright (c) 2012-2016 Dan Wheeler and Dropbox, Inc.
// Copyright (c) 2021 @zxcvbn-ts
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this
// software and associated documentation files (the "Software"), to deal in the Software
// without restriction, including without limitation the rights to use, copy, modify,
// merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
// permit persons to whom the Software is furnished to do so, subject to the following
// conditions:
//
// The above copyright notice and this permission notice shall be included in all copies
// or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED,
// INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A
// PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT
// HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
// CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE
// OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
//
//go:embed common_passwords.txt.gz
var packedCommon []byte

// shortestCore is the fewest characters between the ends of a password that say
// something of it: what is left of “a1234567890” is no word.
const shortestCore = 3

// common holds the list as it is, and what is left of its entries without their ends.
var common = sync.OnceValue(func() map[string]bool {
	found := map[string]bool{}
	for _, one := range readCommon() {
		found[one] = true
		if c := core(one); utf8.RuneCountInString(c) >= shortestCore {
			found[c] = true
		}
	}
	return found
})

// readCommon unpacks the list.
func readCommon() []string {
	packed, err := gzip.NewReader(bytes.NewReader(packedCommon))
	var text []byte
	if err == nil {
		text, err = io.ReadAll(packed)
	}
	if err != nil {
		panic(fmt.Sprintf("account: the list of common passwords: %v", err)) // it is part of the program
	}
	return strings.Fields(string(text))
}

// core is a text without what people put around a word to make a password of it.
func core(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
}

// rows are characters in orders that fingers and heads know; a sequence may go past an
// end, and backwards.
var rows = []string{
	"abcdefghijklmnopqrstuvwxyz", "0123456789", "1234567890",
	"qwertyuiopasdfghjklzxcvbnm", "qwertzuiopasdfghjklyxcvbnm", "azertyuiopqsdfghjklmwxcvbn", "!@#$%^&*()",
}

// isSequence reports whether a text is a part of one of the rows, forwards or backwards.
func isSequence(text string) bool {
	for _, row := range rows {
		for _, step := range []int{1, len(row) - 1} {
			at := strings.Index(row, text[:1])
			follows := at >= 0
			for i := 1; follows && i < len(text); i++ {
				at = (at + step) % len(row)
				follows = text[i] == row[at]
			}
			if follows {
				return true
			}
		}
	}
	return false
}

// isRepeated reports whether a text is one character again and again.
func isRepeated(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return strings.TrimLeft(text, string(first)) == ""
}

// isAgain reports whether a password is a name, once or several times in a row.
func isAgain(password, name string) bool {
	return name != "" && strings.ReplaceAll(password, name, "") == ""
}

// whyWeak says why a password is one of those that are tried first, "" if it is not.
// Upper case, and digits and signs at its ends, do not make it a better one.
func whyWeak(password, user, tenant string) string {
	const advice = "; choose another one, such as a few words in a row."
	password = strings.ToLower(password)
	bare := core(password)
	is := func(name string) bool {
		name = strings.ToLower(name)
		return name != "" && (isAgain(password, name) || bare != "" && isAgain(bare, core(name)))
	}
	forms := []string{password}
	if utf8.RuneCountInString(bare) >= shortestCore {
		forms = append(forms, bare)
	}
	for _, form := range forms {
		switch {
		case form == "":
		case isRepeated(form):
			return "This is one character repeated" + advice
		case isSequence(form):
			return "This is a sequence of characters that follow each other" + advice
		case common()[form]:
			return "This is one of the most common passwords" + advice
		}
	}
	switch {
	case is(user):
		return "This is the name of the user" + advice
	case is(tenant):
		return "This is the name of the tenant" + advice
	}
	return ""
}
