/*
 * must(expr): what cannot be otherwise, because this very code has seen to it. It says to the
 * reader what holds here, and to debug and sanitizer builds (NACRE_ASSERT, set by meson) that they
 * stop at the place where it first does not. In a release it is nothing at all: not evaluated, and
 * the compiler assumes nothing from it. So
 *
 *   - never for what a stranger sent, a file says, the kernel answers or memory runs out of: those
 *     are errors, to be returned;
 *   - the code below it must be as safe without it;
 *   - expr has no effects.
 */
#pragma once

#ifdef NACRE_ASSERT
#define must(expr) ((expr) ? (void)0 : __builtin_trap())
#else
#define must(expr) ((void)sizeof((expr) ? 1 : 0))
#endif
