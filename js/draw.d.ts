/** Draw a view of the game as SVG, as in `card-envs/draw/big_ben.js`; `tall` for narrow screens. */
export function draw(view: { [key: string]: unknown }, tall?: boolean): string;
