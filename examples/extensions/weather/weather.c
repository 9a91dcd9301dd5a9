/* A tool that invents the weather of a city.
 *
 * It reads JSON by hand and without malloc: a frame is kept in one buffer, a value is a slice of it, and only the few
 * strings it needs are decoded, into buffers of fixed size that remember when something did not fit. */

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    FRAME_MAX_BYTES = 1024 * 1024, /* a longer frame is answered with an error */
    TEXT_MAX_BYTES = 256,
    CITY_MAX_BYTES = 200
};

/* Part of a frame: from `at` up to, but not including, `end`. */
struct slice {
    const char *at, *end;
};

/* A decoded string. A length and not a final NUL, since JSON text may contain NUL. */
struct text {
    char bytes[TEXT_MAX_BYTES];
    size_t length;
    bool cut; /* it was longer than the buffer */
};

/* ---- reading ---- */

static void skip_space(struct slice *in) {
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\t' || *in->at == '\r' || *in->at == '\n')) in->at++;
}

static bool skip_string(struct slice *in) {
    for (in->at++; in->at < in->end; in->at++) {
        if (*in->at == '\\')
            in->at++; /* whatever is escaped does not end the string */
        else if (*in->at == '"') {
            in->at++;
            return true;
        }
    }
    in->at = in->end; /* the escape may have led one too far */
    return false;
}

/* A character of a number, or of true, false or null. */
static bool is_literal(char c) { return isalnum((unsigned char)c) || c == '-' || c == '+' || c == '.'; }

/* Move past one value. Counting brackets instead of recursing means that no nesting can exhaust the stack; that `[}`
 * passes does no harm, for nothing in it is used. */
static bool skip_value(struct slice *in) {
    size_t depth = 0;
    do {
        skip_space(in);
        if (in->at == in->end) return false;
        char c = *in->at;
        if (c == '"') {
            if (!skip_string(in)) return false;
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        else if (is_literal(c)) {
            while (in->at < in->end && is_literal(*in->at)) in->at++;
            continue;
        } else if (depth > 0 && (c == '}' || c == ']'))
            depth--;
        else if (depth == 0 || (c != ',' && c != ':'))
            return false;
        in->at++;
    } while (depth > 0);
    return true;
}

/* The four hex digits after \u, or -1. */
static int32_t hex4(const char *at, const char *end) {
    int32_t value = 0;
    if (end - at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *digit = at[i] ? strchr(digits, at[i]) : NULL; /* strchr would find the final NUL */
        if (!digit) return -1;
        value = value * 16 + (int32_t)((digit - digits) % 16);
    }
    return value;
}

static void append(struct text *out, char byte) {
    if (out->length < sizeof out->bytes)
        out->bytes[out->length++] = byte;
    else
        out->cut = true;
}

static void append_code_point(struct text *out, int32_t c) {
    if (c < 0x80)
        append(out, (char)c);
    else if (c < 0x800) {
        append(out, (char)(0xC0 | c >> 6));
        append(out, (char)(0x80 | (c & 0x3F)));
    } else {
        if (c < 0x10000)
            append(out, (char)(0xE0 | c >> 12));
        else {
            append(out, (char)(0xF0 | c >> 18));
            append(out, (char)(0x80 | (c >> 12 & 0x3F)));
        }
        append(out, (char)(0x80 | (c >> 6 & 0x3F)));
        append(out, (char)(0x80 | (c & 0x3F)));
    }
}

/* Decode a \u escape whose digits start at `at`, and the second half of a pair with it. A half alone is no character,
 * so it becomes U+FFFD. Returns how many bytes were read, or 0. */
static size_t decode_unicode(const char *at, const char *end, struct text *out) {
    int32_t c = hex4(at, end);
    if (c < 0) return 0;
    if (c >= 0xD800 && c < 0xDC00 && end - at >= 10 && at[4] == '\\' && at[5] == 'u') {
        int32_t low = hex4(at + 6, end);
        if (low >= 0xDC00 && low < 0xE000) {
            append_code_point(out, 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00));
            return 10;
        }
    }
    append_code_point(out, c >= 0xD800 && c < 0xE000 ? 0xFFFD : c);
    return 4;
}

/* Decode a value that is a string. False if it is something else or not valid. */
static bool decode(struct slice in, struct text *out) {
    out->length = 0;
    out->cut = false;
    if (in.end - in.at < 2 || *in.at != '"') return false;
    for (in.at++, in.end--; in.at < in.end;) {
        char c = *in.at++;
        if ((unsigned char)c < 0x20) return false;
        if (c != '\\') {
            append(out, c);
            continue;
        }
        if (in.at == in.end) return false;
        c = *in.at++;
        if (c == 'u') {
            size_t used = decode_unicode(in.at, in.end, out);
            if (used == 0) return false;
            in.at += used;
        } else {
            const char *from = "\"\\/bfnrt", *to = "\"\\/\b\f\n\r\t";
            const char *found = c ? strchr(from, c) : NULL;
            if (!found) return false;
            append(out, to[found - from]);
        }
    }
    return true;
}

static bool equals(const struct text *text, const char *other) {
    return !text->cut && text->length == strlen(other) && memcmp(text->bytes, other, text->length) == 0;
}

/* Find a member of an object; of two with the same name the last counts. A fault after it does not hide it, so that a
 * frame of which only the start was kept can still be answered. */
static bool member(struct slice in, const char *name, struct slice *value) {
    bool found = false;
    struct text key;
    skip_space(&in);
    if (in.at == in.end || *in.at != '{') return false;
    do {
        in.at++; /* the brace or a comma */
        skip_space(&in);
        struct slice part = {in.at, in.end};
        if (in.at == in.end || *in.at != '"' || !skip_string(&in)) break;
        part.end = in.at;
        bool wanted = decode(part, &key) && equals(&key, name);
        skip_space(&in);
        if (in.at == in.end || *in.at++ != ':') break;
        skip_space(&in);
        part.at = in.at;
        if (!skip_value(&in)) break;
        part.end = in.at;
        if (wanted) {
            *value = part;
            found = true;
        }
        skip_space(&in);
    } while (in.at < in.end && *in.at == ',');
    return found;
}

static bool text_member(struct slice in, const char *name, struct text *out) {
    struct slice value;
    return member(in, name, &value) && decode(value, out);
}

/* ---- writing ---- */

/* The length of the UTF-8 character at `at`, or 0 if there is none: also none for over-long forms, surrogates and what
 * is past U+10FFFF. */
static size_t utf8_length(const unsigned char *at, size_t left) {
    size_t length = at[0] < 0x80 ? 1 : at[0] < 0xC2 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : at[0] < 0xF5 ? 4 : 0;
    if (length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80) return 0;
    if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F)) return 0;
    if ((at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F)) return 0;
    return length;
}

/* Write the inside of a JSON string; a byte that is not UTF-8 becomes U+FFFD, or the host could not read the frame. */
static void write_text(const char *bytes, size_t length) {
    const unsigned char *at = (const unsigned char *)bytes;
    while (length > 0) {
        size_t used = utf8_length(at, length);
        if (used == 0)
            fputs("\\ufffd", stdout);
        else if (*at == '"' || *at == '\\')
            printf("\\%c", *at);
        else if (*at < 0x20)
            printf("\\u%04x", *at);
        else
            fwrite(at, 1, used, stdout);
        at += used ? used : 1;
        length -= used ? used : 1;
    }
}

static void write_result_start(const struct text *id) {
    fputs("{\"type\":\"tool_result\",\"id\":\"", stdout);
    write_text(id->bytes, id->length);
    fputs("\",\"content\":[{\"type\":\"text\",\"text\":\"", stdout);
}

/* The model reads the message, so it says what to do. */
static void write_error(const struct text *id, const char *message) {
    write_result_start(id);
    fputs(message, stdout);
    puts("\"}],\"is_error\":true}");
}

/* ---- the weather ---- */

static const char *const SKIES[] = {"sunny", "cloudy", "rainy", "windy", "foggy", "snowy"};

static uint32_t hash(const struct text *text) { /* FNV-1a: the same city, the same weather */
    uint32_t value = 2166136261u;
    for (size_t i = 0; i < text->length; i++) value = (value ^ (unsigned char)text->bytes[i]) * 16777619u;
    return value;
}

static void answer(const struct text *id, const struct text *city, bool fahrenheit) {
    uint32_t seed = hash(city);
    const char *sky = SKIES[seed % (sizeof SKIES / sizeof *SKIES)];
    int degrees = (int)(seed / 7 % 36) - 5;
    if (fahrenheit) degrees = degrees * 9 / 5 + 32;
    write_result_start(id);
    write_text(city->bytes, city->length);
    printf(": %s, %d %s (invented)\"}],\"structured_content\":{\"city\":\"", sky, degrees, fahrenheit ? "°F" : "°C");
    write_text(city->bytes, city->length);
    printf("\",\"sky\":\"%s\",\"temperature\":%d,\"unit\":\"%s\"}}\n", sky, degrees,
           fahrenheit ? "fahrenheit" : "celsius");
}

/* Arguments are checked here too: a model does not always keep to the schema. */
static void called(struct slice frame, bool whole) {
    struct text id, name, city, unit;
    struct slice args, value;
    if (!text_member(frame, "id", &id) || id.cut) {
        fputs("weather: a tool_call without a usable id\n", stderr);
        return;
    }
    if (!whole) {
        write_error(&id, "the call is longer than 1 MiB; send only a city and a unit");
        return;
    }
    if (!text_member(frame, "name", &name) || !equals(&name, "weather")) {
        write_error(&id, "there is no such tool here, only weather");
        return;
    }
    if (!member(frame, "args", &args) || !text_member(args, "city", &city) || city.length == 0) {
        write_error(&id, "city is missing; send it as a string");
        return;
    }
    if (city.cut || city.length > CITY_MAX_BYTES) {
        write_error(&id, "city is too long; at most 200 bytes");
        return;
    }
    bool fahrenheit = false;
    if (member(args, "unit", &value)) {
        bool valid = decode(value, &unit);
        fahrenheit = valid && equals(&unit, "fahrenheit");
        if (!valid || (!fahrenheit && !equals(&unit, "celsius"))) {
            write_error(&id, "unit must be celsius or fahrenheit");
            return;
        }
    }
    answer(&id, &city, fahrenheit);
}

/* ---- the conversation ---- */

static void register_tool(void) {
    puts("{\"type\":\"register_tool\",\"name\":\"weather\",\"description\":\"Tells the (invented) weather of a city\","
         "\"schema\":{\"type\":\"object\",\"properties\":{"
         "\"city\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Name of the city\"},"
         "\"unit\":{\"type\":\"string\",\"enum\":[\"celsius\",\"fahrenheit\"]}},"
         "\"required\":[\"city\"],\"additionalProperties\":false}}");
    puts("{\"type\":\"ready\"}");
}

/* Handle a frame, of which only the start is there if not `whole`. Returns false at shutdown. */
static bool received(struct slice frame, bool whole) {
    struct text type;
    struct slice rest = frame;
    bool valid = skip_value(&rest);
    skip_space(&rest);
    if (!whole)
        fputs("weather: a frame longer than 1 MiB\n", stderr);
    else if (!valid || rest.at != rest.end) {
        fputs("weather: skipped a line that is not JSON\n", stderr);
        return true;
    }
    if (!text_member(frame, "type", &type)) return true;
    if (equals(&type, "tool_call"))
        called(frame, whole);
    else if (equals(&type, "hello_ack"))
        register_tool();
    else if (equals(&type, "shutdown")) {
        puts("{\"type\":\"shutdown_ack\"}");
        return false;
    }
    /* tool_cancel needs nothing: frames come in order and each call is answered before the next frame is read, so a
     * cancel finds its call done. Anything else is from a newer host. */
    return true;
}

int main(void) {
    static char frame[FRAME_MAX_BYTES];
    size_t length = 0;
    bool whole = true;
    int c;

    puts("{\"type\":\"hello\",\"name\":\"weather\",\"version\":\"0.1.0\","
         "\"capabilities\":[\"tools\",\"tool_cancel\"]}");
    fflush(stdout);
    while ((c = getchar()) != EOF) { /* what follows the last newline is no frame */
        if (c != '\n') {
            if (length < sizeof frame)
                frame[length++] = (char)c;
            else
                whole = false;
            continue;
        }
        bool more = received((struct slice){frame, frame + length}, whole);
        if (fflush(stdout) == EOF || !more) break; /* the host waits for what we wrote, or is gone */
        length = 0;
        whole = true;
    }
    return 0;
}
