// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"slices"
	"testing"
)

// smaller returns the picture with 256 colours, so that every pixel has one near its own.
func smaller(t *testing.T, from []byte) []byte {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(from))
	if err != nil {
		t.Fatal(err)
	}
	n := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA) }
	size := picture.Bounds()
	for y := range size.Dy() {
		for x := range size.Dx() {
			n[at(x, y)]++
		}
	}
	var all []color.RGBA
	for c := range n {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	palette := covering(all, 0)
	for far := 1; len(palette) > 256; far++ {
		palette = covering(all, far)
	}
	index := map[color.RGBA]uint8{}
	for _, c := range all {
		index[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(size, palette)
	for y := range size.Dy() {
		for x := range size.Dx() {
			out.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// covering returns the first colours that are further than that from those before, in each of red, green and blue.
func covering(all []color.RGBA, far int) color.Palette {
	var out color.Palette
	near := func(c color.Color, d color.RGBA) bool {
		e := c.(color.RGBA)
		return max(abs(int(e.R)-int(d.R)), abs(int(e.G)-int(d.G)), abs(int(e.B)-int(d.B))) <= far
	}
	for _, d := range all {
		if !slices.ContainsFunc(out, func(c color.Color) bool { return near(c, d) }) {
			if out = append(out, d); len(out) > 256 {
				break
			}
		}
	}
	return out
}

func abs(n int) int { return max(n, -n) }
