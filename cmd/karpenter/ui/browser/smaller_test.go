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

// smaller returns the picture with 256 colours: those that most of its pixels have.
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
	var palette color.Palette
	for _, c := range all[:min(len(all), 256)] {
		palette = append(palette, c)
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
